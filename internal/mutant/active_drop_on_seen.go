//go:build mutant && mutant_drop_on_seen

package mutant

// Active is the mutant of this build.
const Active = DropOnSeen
