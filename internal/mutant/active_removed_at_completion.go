//go:build mutant && mutant_removed_at_completion

package mutant

// Active is the mutant of this build.
const Active = RemovedAtCompletion
