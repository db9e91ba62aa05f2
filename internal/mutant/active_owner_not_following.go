//go:build mutant && mutant_owner_not_following

package mutant

// Active is the mutant of this build.
const Active = OwnerNotFollowing
