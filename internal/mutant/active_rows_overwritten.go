//go:build mutant && mutant_rows_overwritten

package mutant

// Active is the mutant of this build.
const Active = RowsOverwritten
