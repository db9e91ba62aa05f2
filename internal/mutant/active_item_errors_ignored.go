//go:build mutant && mutant_item_errors_ignored

package mutant

// Active is the mutant of this build.
const Active = ItemErrorsIgnored
