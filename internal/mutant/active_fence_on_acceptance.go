//go:build mutant && mutant_fence_on_acceptance

package mutant

// Active is the mutant of this build.
const Active = FenceOnAcceptance
