package native

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A hundred articles flow while the worker is killed ten times: each is indexed, once and whole, and found by its vectors.
// Submitted again they change nothing.
func TestHundredArticlesSurviveTenKills(t *testing.T) {
	needNative(t)
	p := newPods(t, "hundred")
	worker := p.runAll()
	docs, m := articles(t, 100), newModel()
	sent := p.putAll(m, docs, 30*time.Millisecond)
	for range 10 {
		pause(time.Duration(300+rand.IntN(900)) * time.Millisecond)
		p.restart(worker)
	}
	sent()
	p.check(m)
	before, err := p.api.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range docs {
		p.ingest(d)
	}
	p.check(m)
	after, err := p.api.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if before.Documents["indexed"] != after.Documents["indexed"] || before.Store != after.Store {
		t.Errorf("submitted again, they changed %v %v to %v %v", before.Documents, before.Store, after.Documents, after.Store)
	}
}
