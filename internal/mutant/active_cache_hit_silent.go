//go:build mutant && mutant_cache_hit_silent

package mutant

// Active is the mutant of this build.
const Active = CacheHitSilent
