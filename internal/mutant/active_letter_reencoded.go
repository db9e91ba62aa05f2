//go:build mutant && mutant_letter_reencoded

package mutant

// Active is the mutant of this build.
const Active = LetterReencoded
