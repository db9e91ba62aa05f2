package main

import "github.com/waymarkhq/waymark/internal/mutant"

// catalogue says of each mutant what is wrong with it, and which tests ought to notice.
func catalogue() []entry {
	return []entry{
		{mutant.AcksOne, "a record counts as sent once the leader has it",
			[]command{at("kafka", "TestEveryRecordAsksForAllReplicas")}},
		{mutant.NewestOffset, "a new group skips what was sent before it came",
			[]command{at("engine", "TestGroupStartsAtTheOldestRecord")}},
		{mutant.UnorderedCommit, "the highest offset that is done is committed",
			[]command{at("engine", "TestCommitWaitsForTheSlowest")}},
		{mutant.DropOnSeen, "a message that the row knows has no outputs",
			[]command{at("processors", "TestNewDocument"), at("pipeline", "TestCrashBehindTheLocalRow")}},
		{mutant.RandomChunkIDs, "each write of a chunk has an id of its own",
			[]command{at("processors", "TestChunksWrittenAgainAreTheSameObjects")}},
		{mutant.ItemErrorsIgnored, "errors of single objects in the store's answer are not read",
			[]command{at("processors", "TestOutcomesOfSingleObjects")}},
		{mutant.NoStaleDelete, "what was served before stays in the store",
			[]command{at("rag/ledger", "TestRemovals"), at("pipeline", "TestDocumentThroughThePipeline")}},
		{mutant.CommitBeforeUpsert, "a message is done when its batch takes it",
			[]command{at("engine", "TestCommitWaitsForTheBatch")}},
		{mutant.LetterReencoded, "a dead letter holds the document as text",
			[]command{at("processors", "TestLetterHasTheExactBytes"), end("TestMalformedRecordKeepsItsBytesAndDiesAgain")}},
		{mutant.WallClockVersions, "a version is the time at which its record is read",
			[]command{at("processors", "TestNewDocument")}},

		{mutant.RowNotWrittenAgain, "a row that the local store has is not sent again",
			[]command{at("engine", "TestRedeliverySendsOutputsAndRowAgain"), at("pipeline", "TestCrashBehindTheLocalRow")}},
		{mutant.RemoveAllOthers, "a removal takes later versions too",
			[]command{at("sinks/sqlite", "TestSink")}},
		{mutant.UnchangedUnconfirmed, "content is unchanged if it is served now, whatever was accepted since",
			[]command{at("processors", "TestUnchangedOnlyAgainstTheLatest")}},
		{mutant.RowsOverwritten, "the last record of a table is the row, whoever wrote it",
			[]command{at("engine", "TestRecoveryMergesRows")}},
		{mutant.TwoAuthors, "the chunker says a final status beside the indexer",
			[]command{at("processors", "TestReusedMessageID")}},
		{mutant.LetterHoldsChunk, "a dead letter holds what the failing stage had in hand",
			[]command{at("processors", "TestLetterHasTheExactBytes"), end("TestMalformedRecordKeepsItsBytesAndDiesAgain")}},

		{mutant.FenceOnAcceptance, "a version that is accepted supersedes, even if it dies",
			[]command{at("rag/ledger", "TestTheFence")}},
		{mutant.RemovedAtCompletion, "what was served goes as soon as the next version is complete",
			[]command{at("processors", "TestClockOfARemoval"), at("pipeline", "TestReplacedChunksStayForLateReaders")}},
		{mutant.IDsWithoutGeneration, "a replay writes the chunk ids of the generation that died",
			[]command{at("processors", "TestLateChunksOfADeadGenerationLeaveTheReplayAlone")}},
		{mutant.TimerEffectUnheld, "a timer sends the retry itself, which no record and no row says",
			[]command{at("processors", "TestScheduledRetryGoesOut")}},
		{mutant.OwnerNotFollowing, "the owner of a table does not look at what strangers write there",
			[]command{at("engine", "TestOwnerFollowsItsTable")}},

		{mutant.OutageIsAttempt, "a try that meets an outage is one of the document's attempts",
			[]command{at("engine", "TestOutageIsNoAttempt")}},
		{mutant.AmbiguousIsDone, "a write whose answer was lost is confirmed",
			[]command{at("processors", "TestAmbiguousWriteIsRepaired")}},
		{mutant.CacheHitSilent, "a chunk whose vector is known gives no vector record",
			[]command{at("processors", "TestCacheSavesTheCallNotTheOutput")}},
	}
}
