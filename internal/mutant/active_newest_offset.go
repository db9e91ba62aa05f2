//go:build mutant && mutant_newest_offset

package mutant

// Active is the mutant of this build.
const Active = NewestOffset
