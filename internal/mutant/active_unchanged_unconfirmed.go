//go:build mutant && mutant_unchanged_unconfirmed

package mutant

// Active is the mutant of this build.
const Active = UnchangedUnconfirmed
