//go:build !mutant

package mutant

// Active is the mutant of this build.
const Active Name = ""
