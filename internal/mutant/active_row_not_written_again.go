//go:build mutant && mutant_row_not_written_again

package mutant

// Active is the mutant of this build.
const Active = RowNotWrittenAgain
