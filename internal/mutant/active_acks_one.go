//go:build mutant && mutant_acks_one

package mutant

// Active is the mutant of this build.
const Active = AcksOne
