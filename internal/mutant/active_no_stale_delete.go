//go:build mutant && mutant_no_stale_delete

package mutant

// Active is the mutant of this build.
const Active = NoStaleDelete
