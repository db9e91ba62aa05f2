package rag_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/waymarkhq/waymark/rag"
)

func TestMetadataTakeADefaultWhereTheSenderGaveNone(t *testing.T) {
	given := rag.NewMetadata(map[string]string{"lang": "de", "year": "2026"})
	if got := given.WithDefault("lang", "en"); !slices.Equal(got, given) {
		t.Errorf("what the sender gave is replaced: %q", got)
	}
	some := rag.NewMetadata(map[string]string{"language": "x", "year": "2026"})
	if got := some.WithDefault("lang", "en"); !slices.Equal(got, rag.Metadata{"lang=en", "language=x", "year=2026"}) || len(some) != 2 {
		t.Errorf("%q", got)
	}
	if got := some.WithDefault("lang", ""); !slices.Equal(got, some) {
		t.Errorf("an empty one: %q", got)
	}
	pairs := map[string]string{}
	for i := range rag.MaxMetadata {
		pairs[fmt.Sprint(i)] = "x"
	}
	if got := rag.NewMetadata(pairs).WithDefault("lang", "en"); len(got) != rag.MaxMetadata {
		t.Errorf("%d pairs, more than may be", len(got))
	}
}
