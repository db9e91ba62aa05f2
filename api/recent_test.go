package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag"
)

func TestRecentForgetsTheOldestFirst(t *testing.T) {
	r := newRecent(3, func() time.Time { return time.Unix(1, 0) })
	for i := range 5 {
		r.remember("doc", fmt.Sprint(i), rag.Hash{byte(i)})
		r.remember("doc", fmt.Sprint(i), rag.Hash{99}) // the first word counts, and takes no second place
	}
	for i := range 5 {
		hash, ok := r.lookup("doc", fmt.Sprint(i))
		if ok != (i >= 2) || ok && hash != (rag.Hash{byte(i)}) {
			t.Errorf("message %d: %v %x", i, ok, hash[:1])
		}
	}
	if len(r.seen) != 3 {
		t.Errorf("%d entries are held", len(r.seen))
	}
	if _, ok := r.lookup("do", "c\x004"); ok {
		t.Error("two pairs of ids share a place")
	}
}
