// Package mutant names the bugs that a test build can bring back, one at a time, to show that the tests would notice. In an
// ordinary build Active is empty, and the compiler leaves the places where a bug sits out.
//
// A mutant is built with two tags: mutant, and mutant_ with the mutant's name behind it, such as
//
//	go test -tags mutant,mutant_drop_on_seen ./processors
//
// Exactly one mutant must be named, else the package does not compile. The tag mutant_any makes a build that has all of them, and
// is the one that the variable MUTANT names when it runs, none if it is empty. The command in cmd/mutants runs the tests that
// ought to catch each of them.
package mutant

// Name of a mutant: what stands behind mutant_ in its build tag. "" is none.
type Name string

// Ten bugs that a stream processor for documents may have.
const (
	// AcksOne: a record counts as sent once the leader has it.
	AcksOne Name = "acks_one"
	// NewestOffset: a new group skips what was sent before it came.
	NewestOffset Name = "newest_offset"
	// UnorderedCommit: the highest offset that is done is committed, whatever lies below it.
	UnorderedCommit Name = "unordered_commit"
	// DropOnSeen: a message that the row knows has no outputs, also where a crash came before they were sent.
	DropOnSeen Name = "drop_on_seen"
	// RandomChunkIDs: each write of a chunk has an id of its own.
	RandomChunkIDs Name = "random_chunk_ids"
	// ItemErrorsIgnored: what the store says of single objects of a batch is not read.
	ItemErrorsIgnored Name = "item_errors_ignored"
	// NoStaleDelete: what was served before stays in the store.
	NoStaleDelete Name = "no_stale_delete"
	// CommitBeforeUpsert: a message is done when its batch takes it, not when the store has it.
	CommitBeforeUpsert Name = "commit_before_upsert"
	// LetterReencoded: a dead letter holds the document as text, not byte for byte.
	LetterReencoded Name = "letter_reencoded"
	// WallClockVersions: a version is the time at which its record is read.
	WallClockVersions Name = "wall_clock_versions"
)

// Six from the contract.
const (
	// RowNotWrittenAgain: a row that is what the local store has is not sent, also where its record never reached the table.
	RowNotWrittenAgain Name = "row_not_written_again"
	// RemoveAllOthers: a removal takes every version but its own, the later ones too.
	RemoveAllOthers Name = "remove_all_others"
	// UnchangedUnconfirmed: content is unchanged if it is served now, whatever was accepted since.
	UnchangedUnconfirmed Name = "unchanged_unconfirmed"
	// RowsOverwritten: the last record of a table is the row, whoever wrote it.
	RowsOverwritten Name = "rows_overwritten"
	// TwoAuthors: the chunker says a final status beside the indexer.
	TwoAuthors Name = "two_authors"
	// LetterHoldsChunk: a dead letter holds what the failing stage had in hand, not the document record.
	LetterHoldsChunk Name = "letter_holds_chunk"
)

// Five from wordings of the contract that sound right and are not.
const (
	// FenceOnAcceptance: a version that is accepted supersedes the ones before it, even if it dies.
	FenceOnAcceptance Name = "fence_on_acceptance"
	// RemovedAtCompletion: what was served before goes as soon as the next version is complete, under the eyes of late readers.
	RemovedAtCompletion Name = "removed_at_completion"
	// IDsWithoutGeneration: a replay writes the chunk ids of the generation that died.
	IDsWithoutGeneration Name = "ids_without_generation"
	// TimerEffectUnheld: a timer sends the retry itself, so that no record and no row say that it was sent.
	TimerEffectUnheld Name = "timer_effect_unheld"
	// OwnerNotFollowing: the owner of a table does not look at what strangers write there.
	OwnerNotFollowing Name = "owner_not_following"
)

// Three more.
const (
	// OutageIsAttempt: a try that fails because the store is away is one of the document's attempts.
	OutageIsAttempt Name = "outage_is_attempt"
	// AmbiguousIsDone: a write whose answer was lost is confirmed.
	AmbiguousIsDone Name = "ambiguous_is_done"
	// CacheHitSilent: a chunk whose vector is known already gives no vector record.
	CacheHitSilent Name = "cache_hit_silent"
)

// All lists the mutants.
func All() []Name {
	return []Name{
		AcksOne, NewestOffset, UnorderedCommit, DropOnSeen, RandomChunkIDs, ItemErrorsIgnored, NoStaleDelete, CommitBeforeUpsert,
		LetterReencoded, WallClockVersions,
		RowNotWrittenAgain, RemoveAllOthers, UnchangedUnconfirmed, RowsOverwritten, TwoAuthors, LetterHoldsChunk,
		FenceOnAcceptance, RemovedAtCompletion, IDsWithoutGeneration, TimerEffectUnheld, OwnerNotFollowing,
		OutageIsAttempt, AmbiguousIsDone, CacheHitSilent,
	}
}
