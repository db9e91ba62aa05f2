package rag_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/waymarkhq/waymark/rag"
)

// The ids stand in stores: what a release gives another id is in the store twice.
func TestChunkIDsAreWhatTheyHaveAlwaysBeen(t *testing.T) {
	for want, got := range map[string]uuid.UUID{
		"f923a16a-5007-5e97-ac0d-c4189f5640d4": rag.ChunkID("", "doc", rag.Revision{Version: 1}, 0),
		"eeebb3ab-de84-5e8d-992a-884bc99472d0": rag.ChunkID("tenant", "Ü/ 文書", rag.Revision{Version: 1 << 52, Generation: 7}, 9_999),
	} {
		if got.String() != want || got.Version() != 5 {
			t.Errorf("the id is %s, of version %d, want %s", got, got.Version(), want)
		}
	}
}

// Ids differ in whatever tells two chunks apart, also where the parts would read the same one behind the other.
func TestChunkIDsAreApart(t *testing.T) {
	ids := map[uuid.UUID]int{}
	all := 0
	for _, tenant := range []string{"", "a", "ab", "1"} {
		for _, document := range []string{"a", "b", "ab", "bc", "1", "11"} {
			for _, rev := range []rag.Revision{{Version: 1}, {Version: 1, Generation: 1}, {Version: 1, Generation: 11}, {Version: 11}, {Version: 11, Generation: 1}} {
				for _, index := range []int{0, 1, 11, 111} {
					ids[rag.ChunkID(tenant, document, rev, index)]++
					all++
				}
			}
		}
	}
	if len(ids) != all {
		t.Errorf("%d ids for %d chunks", len(ids), all)
	}
}
