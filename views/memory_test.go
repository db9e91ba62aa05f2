package views

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
)

// What the package promises of the memory of one entry.
const promisedBytes = 200

func TestIndexMemory(t *testing.T) {
	const n = 100_000
	documents, messages, letters := newDocumentIndex(), newMessageIndex(), newLetterIndex()
	now := time.Now().UTC()
	for name, put := range map[string]func(key string, i int){
		"documents": func(key string, i int) {
			rev := rag.Revision{Version: rag.Version(i)}
			documents.put(0, key, &ledger.DocumentRow{
				Served: ledger.Served{Revision: rev, Count: 1},
				Finals: map[string]ledger.Final{"m": {Revision: rev, Status: rag.StatusIndexed, At: now.Add(time.Duration(i))}},
			})
		},
		"messages": func(key string, _ int) {
			messages.put(0, rag.EventKey(key, "0199a7a2-7e0e-7a3c-8a51-5f0e0a6b2c11"), nil)
		},
		"letters": func(key string, i int) {
			letters.put(0, key, &ledger.LetterRow{State: rag.LetterWaiting, LastFailed: now.Add(time.Duration(i)), Failure: rag.Failure{Stage: "chunker", Reason: "no_text"}})
		},
	} {
		before := heap()
		keys := 0
		for i := range n {
			key := fmt.Sprintf("folder/document-%08d.txt", i*7919%n)
			keys += len(key)
			put(key, i)
		}
		used := int(heap()-before) - keys
		t.Logf("%s: %d bytes an entry beside its key", name, used/n)
		if used/n > promisedBytes {
			t.Errorf("%s: %d bytes an entry beside its key, promised are %d", name, used/n, promisedBytes)
		}
	}
	runtime.KeepAlive(documents)
	runtime.KeepAlive(messages)
	runtime.KeepAlive(letters)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
