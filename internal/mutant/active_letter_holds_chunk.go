//go:build mutant && mutant_letter_holds_chunk

package mutant

// Active is the mutant of this build.
const Active = LetterHoldsChunk
