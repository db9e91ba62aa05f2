package rag_test

import (
	"testing"

	"github.com/waymarkhq/waymark/rag"
)

// Keys are read from records that anybody may have written: what is accepted is what is written.
func FuzzParseEventKey(f *testing.F) {
	for _, key := range []string{"3:docm1", "0:", "02:ab", "-1:a", "9999999999999999999:a", ":", "3:d"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		document, message, err := rag.ParseEventKey(key)
		if err == nil && rag.EventKey(document, message) != key {
			t.Errorf("%q was read as %q and %q", key, document, message)
		}
	})
}

func FuzzParseBlobKey(f *testing.F) {
	const sum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for _, key := range []string{"2026-11-29/" + sum, "2026-13-01/" + sum, "2026-11-29/" + sum[2:], "2026-11-29/../" + sum, sum, ""} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if b, err := rag.ParseBlobKey(key); err == nil && b.Key() != key {
			t.Errorf("%q was read as %+v", key, b)
		}
	})
}
