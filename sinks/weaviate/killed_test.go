package weaviate

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/waymarkhq/waymark/sinks"
)

// repairRounds bound a test's repairs; whoever reads back repeats them as well (TestWhatARepairHidesIsFoundAgain).
const repairRounds = 5

// A server that is killed in the middle of a batch may hold objects without their vectors, of that batch and of earlier ones
// that it has acknowledged. Reading back finds them, and the repair brings them back.
func TestServerKilledInABatch(t *testing.T) {
	server := ownServer(t, 18180)
	s := openStore(t, Options{URL: server.url, GRPC: server.grpc})
	ctx := context.Background()
	const batch, batches, killAfter = 100, 20, 15
	all := objects(batch * batches)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range all {
		for j := range all[i].Vector {
			all[i].Vector[j] = float32(r.NormFloat64())
		}
	}

	acknowledged := make(chan int, batches)
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		for n := range acknowledged {
			if n == killAfter {
				server.kill() // while the next batch is on its way
				return
			}
		}
	}()
	var results []sinks.Result
	for n := range batches {
		results = append(results, s.Upsert(ctx, all[n*batch:(n+1)*batch], nil)...)
		acknowledged <- n + 1
	}
	close(acknowledged)
	<-killed
	counts := make(map[sinks.Outcome]int)
	var unfinished []sinks.Object
	for i, r := range results {
		counts[r.Outcome]++
		if r.Outcome != sinks.Done {
			unfinished = append(unfinished, all[i])
		}
	}
	t.Logf("outcomes: %v", counts)
	if counts[sinks.Outage]+counts[sinks.Ambiguous] == 0 || counts[sinks.Done] < killAfter*batch || counts[sinks.Rejected] > 0 {
		t.Fatalf("the kill was not seen: %v", counts)
	}

	if err := server.start(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, Options{URL: server.url, GRPC: server.grpc}) // the process of the store was killed as well
	repair := func(objects []sinks.Object) {
		t.Helper()
		for round := 1; len(objects) > 0; round++ {
			named := make(map[int]bool)
			for i := range objects {
				named[i] = true
			}
			var again []sinks.Object // what one repair writes can hide what it has written before: that is said, and repaired
			for i, r := range s.Upsert(ctx, objects, named) {
				if r.Err != nil && (r.Outcome != sinks.Ambiguous || round == repairRounds) {
					t.Fatalf("repair %d: %s: %v", round, r.Outcome, r.Err)
				}
				if r.Err != nil {
					again = append(again, objects[i])
				}
			}
			objects = again
		}
	}
	repair(unfinished)
	missing, err := s.Missing(ctx, all)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d acknowledged vectors were lost", len(missing), counts[sinks.Done])
	for round := 1; len(missing) > 0; round++ {
		if round > repairRounds {
			t.Fatalf("Missing = %v after %d repairs", missing, repairRounds)
		}
		var lost []sinks.Object
		for _, i := range missing {
			lost = append(lost, all[i])
		}
		repair(lost)
		if missing, err = s.Missing(ctx, all); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Count(ctx); err != nil || n != int64(len(all)) {
		t.Errorf("Count = %d, %v, want %d", n, err, len(all))
	}
}
