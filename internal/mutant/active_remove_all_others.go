//go:build mutant && mutant_remove_all_others

package mutant

// Active is the mutant of this build.
const Active = RemoveAllOthers
