//go:build mutant && mutant_random_chunk_ids

package mutant

// Active is the mutant of this build.
const Active = RandomChunkIDs
