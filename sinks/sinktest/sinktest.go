// Package sinktest is the suite that every vector store must pass, with faults put into it, and an exact reference store
// in memory with programmable faults, for tests of what is built on stores.
package sinktest

import (
	"testing"

	"github.com/waymarkhq/waymark/sinks"
)

// Store is what the pipeline needs of a store.
type Store interface {
	sinks.Sink
	sinks.Searcher
	sinks.Scanner
}

// FaultKind says what happens to a write.
type FaultKind int

// Kinds of faults.
const (
	// LostBefore: the write is not applied, and no answer comes.
	LostBefore FaultKind = iota
	// LostAfter: the write is applied, and no answer comes.
	LostAfter
	// LostLater: no answer comes, and the write is applied when the fault is released.
	LostLater
	// FailItem: one object of the write fails and may succeed later; the others are done.
	FailItem
	// FailAll: the store is away, read-only or overloaded.
	FailAll
)

func (k FaultKind) String() string {
	return [...]string{"lost before", "lost after", "lost later", "fail item", "fail all"}[k]
}

// Fault is met by one write.
type Fault struct {
	Kind FaultKind
	Item int // FailItem: the index of the object
}

// Harness is one empty store under test.
type Harness struct {
	Store Store
	// Dimensions of the store's vectors, at least 8.
	Dimensions int
	// Reopen closes the store and opens it again on the same data. The test goes on with what it returns.
	Reopen func(t testing.TB) Store
	// Arm makes the next write (Upsert or Remove) meet a fault, at the boundary between the store's own code and what it
	// stands on. release lets a write that was LostLater happen, and waits for it; of other kinds it does nothing.
	Arm func(t testing.TB, f Fault) (release func())
	// MaxText is the size of the largest text to be tried, in bytes; 0 means 1 MiB.
	MaxText int
}

// Run runs the suite. newHarness makes an empty store for each test, and cleans it up with t.Cleanup.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, h Harness)
	}{
		{"Upsert/stores every field", testUpsertStoresFields},
		{"Upsert/overwrites", testUpsertOverwrites},
		{"Upsert/again changes nothing", testUpsertAgain},
		{"Upsert/takes the last of two with one id", testUpsertSameIDTwice},
		{"Upsert/judges each object", testUpsertJudgesEachObject},
		{"Upsert/takes none", testUpsertNone},
		{"Upsert/takes many", testUpsertMany},
		{"Upsert/stops with its context", testUpsertCanceled},
		{"Upsert/takes a huge text", testUpsertHugeText},
		{"Remove/exactly one revision", testRemoveExact},
		{"Remove/below a revision", testRemoveBelow},
		{"Remove/nothing", testRemoveNothing},
		{"Remove/many", testRemoveMany},
		{"Documents are apart", testDocumentsAreApart},
		{"Search/by vector", testSearchByVector},
		{"Search/by text", testSearchByText},
		{"Search/in any script", testSearchScripts},
		{"Search/hybrid", testSearchHybrid},
		{"Search/only what is served", testSearchServed},
		{"Search/with metadata", testSearchMetadata},
		{"Search/in one document", testSearchDocument},
		{"Search/refuses unusable queries", testSearchRefuses},
		{"Search/an empty store", testSearchEmpty},
		{"Missing", testMissing},
		{"Scan", testScan},
		{"Canary", testCanary},
		{"Reopen", testReopen},
		{"Concurrent use", testConcurrent},
		{"Model", testModel},
		{"Fault/no answer", testFaultNoAnswer},
		{"Fault/no answer to an overwrite", testFaultOverwrite},
		{"Fault/no answer to a removal", testFaultRemove},
		{"Fault/one object fails", testFaultItem},
		{"Fault/the store is away", testFaultOutage},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHarness(t)
			if h.Arm == nil || h.Reopen == nil {
				t.Fatal("the harness can neither inject faults nor reopen the store")
			}
			test.run(t, h)
		})
	}
}
