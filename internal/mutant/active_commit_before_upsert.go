//go:build mutant && mutant_commit_before_upsert

package mutant

// Active is the mutant of this build.
const Active = CommitBeforeUpsert
