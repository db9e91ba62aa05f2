//go:build mutant && mutant_unordered_commit

package mutant

// Active is the mutant of this build.
const Active = UnorderedCommit
