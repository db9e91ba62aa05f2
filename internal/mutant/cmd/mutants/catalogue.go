package main

import "github.com/waymarkhq/waymark/internal/mutant"

// catalogue says of each mutant what is wrong with it, and which tests ought to notice.
func catalogue() []entry {
	return []entry{
		{name: mutant.AcksOne, what: "a record counts as sent once the leader has it",
			catches: []command{at("kafka", "TestEveryRecordAsksForAllReplicas")}},
		{name: mutant.NewestOffset, what: "a new group skips what was sent before it came",
			catches: []command{at("engine", "TestGroupStartsAtTheOldestRecord")}},
		{name: mutant.UnorderedCommit, what: "the highest offset that is done is committed",
			catches: []command{at("engine", "TestCommitWaitsForTheSlowest")}},
		{name: mutant.DropOnSeen, what: "a message that the row knows has no outputs",
			catches: []command{at("processors", "TestNewDocument"), at("pipeline", "TestCrashBehindTheLocalRow")}},
		{name: mutant.RandomChunkIDs, what: "each write of a chunk has an id of its own",
			catches: []command{at("processors", "TestChunksWrittenAgainAreTheSameObjects")}},
		{name: mutant.ItemErrorsIgnored, what: "errors of single objects in the store's answer are not read",
			catches: []command{at("processors", "TestOutcomesOfSingleObjects")}},
		{name: mutant.NoStaleDelete, what: "what was served before stays in the store",
			catches: []command{at("rag/ledger", "TestRemovals"), at("pipeline", "TestDocumentThroughThePipeline")}},
		{name: mutant.CommitBeforeUpsert, what: "a message is done when its batch takes it",
			catches: []command{at("engine", "TestCommitWaitsForTheBatch")}},
		{name: mutant.LetterReencoded, what: "a dead letter holds the document as text",
			catches: []command{at("processors", "TestLetterHasTheExactBytes"), end("TestMalformedRecordKeepsItsBytesAndDiesAgain")}},
		{name: mutant.WallClockVersions, what: "a version is the time at which its record is read",
			catches: []command{at("processors", "TestNewDocument")}},

		{name: mutant.RowNotWrittenAgain, what: "a row that the local store has is not sent again",
			catches: []command{at("engine", "TestRedeliverySendsOutputsAndRowAgain"), at("pipeline", "TestCrashBehindTheLocalRow")}},
		{name: mutant.RemoveAllOthers, what: "a removal takes later versions too",
			catches: []command{at("sinks/sqlite", "TestSink")}},
		{name: mutant.UnchangedUnconfirmed, what: "content is unchanged if it is served now, whatever was accepted since",
			catches: []command{at("processors", "TestUnchangedOnlyAgainstTheLatest")}},
		{name: mutant.RowsOverwritten, what: "the last record of a table is the row, whoever wrote it",
			catches: []command{at("engine", "TestRecoveryMergesRows")}},
		{name: mutant.TwoAuthors, what: "the chunker says a final status beside the indexer",
			catches: []command{at("processors", "TestReusedMessageID")}},
		{name: mutant.LetterHoldsChunk, what: "a dead letter holds what the failing stage had in hand",
			catches: []command{at("processors", "TestLetterHasTheExactBytes"), end("TestMalformedRecordKeepsItsBytesAndDiesAgain")}},

		{name: mutant.FenceOnAcceptance, what: "a version that is accepted supersedes, even if it dies",
			catches: []command{at("rag/ledger", "TestTheFence")}},
		{name: mutant.RemovedAtCompletion, what: "what was served goes as soon as the next version is complete",
			catches: []command{at("processors", "TestClockOfARemoval"), at("pipeline", "TestReplacedChunksStayForLateReaders")}},
		{name: mutant.IDsWithoutGeneration, what: "a replay writes the chunk ids of the generation that died",
			catches: []command{at("processors", "TestLateChunksOfADeadGenerationLeaveTheReplayAlone")}},
		{name: mutant.TimerEffectUnheld, what: "a timer sends the retry itself, which no record and no row says",
			catches: []command{at("processors", "TestScheduledRetryGoesOut")}},
		{name: mutant.OwnerNotFollowing, what: "the owner of a table does not look at what strangers write there",
			catches: []command{at("engine", "TestOwnerFollowsItsTable")}},

		{name: mutant.OutageIsAttempt, what: "a try that meets an outage is one of the document's attempts",
			catches: []command{at("engine", "TestOutageIsNoAttempt")}},
		{name: mutant.AmbiguousIsDone, what: "a write whose answer was lost is confirmed",
			catches: []command{at("processors", "TestAmbiguousWriteIsRepaired")}},
		{name: mutant.CacheHitSilent, what: "a chunk whose vector is known gives no vector record",
			catches: []command{at("processors", "TestCacheSavesTheCallNotTheOutput")}},
	}
}
