//go:build mutant && mutant_two_authors

package mutant

// Active is the mutant of this build.
const Active = TwoAuthors
