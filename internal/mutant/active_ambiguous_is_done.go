//go:build mutant && mutant_ambiguous_is_done

package mutant

// Active is the mutant of this build.
const Active = AmbiguousIsDone
