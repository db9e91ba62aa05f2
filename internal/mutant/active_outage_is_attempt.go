//go:build mutant && mutant_outage_is_attempt

package mutant

// Active is the mutant of this build.
const Active = OutageIsAttempt
