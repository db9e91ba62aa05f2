//go:build mutant && mutant_ids_without_generation

package mutant

// Active is the mutant of this build.
const Active = IDsWithoutGeneration
