package rag_test

import (
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag"
)

func TestBlobKey(t *testing.T) {
	at := time.Date(2026, 11, 30, 1, 0, 0, 0, time.FixedZone("east", 3*3600))
	b := rag.NewBlob(at, sha256.Sum256([]byte("content")), 7)
	if want := "2026-11-29/ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"; b.Key() != want {
		t.Errorf("key %q, want %q", b.Key(), want)
	}
	got, err := rag.ParseBlobKey(b.Key())
	if want := (rag.Blob{Day: b.Day, SHA256: b.SHA256}); err != nil || got != want {
		t.Errorf("parsed %+v, %v", got, err)
	}
	hash := strings.Repeat("ab", 32)
	for _, bad := range []string{"", "/", hash, "2026-11-29", "2026-11-29/", "2026-11-29/" + hash[:63], "2026-11-29/" + hash + "00", "2026-11-29/" + strings.ToUpper(hash),
		"2026-11-31/" + hash, "2026-1-29/" + hash, "../../etc/passwd", "2026-11-29/../" + hash, "2026-11-29//" + hash} {
		if _, err := rag.ParseBlobKey(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// A submission is the same one wherever its content travels: settings may change between two sendings.
func TestSubmissionHashDoesNotDependOnTheWay(t *testing.T) {
	content := []byte(strings.Repeat("x", rag.InlineBytes+1))
	blob := rag.NewBlob(time.Unix(0, 0), sha256.Sum256(content), int64(len(content)))
	later := rag.NewBlob(time.Unix(1e9, 0), blob.SHA256, blob.Size)
	inline := rag.Document{Content: content, Title: "t"}
	for name, d := range map[string]rag.Document{"by reference": {Blob: &blob, Title: "t"}, "on another day": {Blob: &later, Title: "t"}} {
		if d.SubmissionHash() != inline.SubmissionHash() {
			t.Errorf("%s the hash is another one", name)
		}
	}
	sum := sha256.Sum256(content)
	for name, d := range map[string]rag.Document{"other content": {Content: append([]byte("y"), content...), Title: "t"}, "another title": {Blob: &blob},
		"the hash as content": {Content: sum[:], Title: "t"}} {
		if d.SubmissionHash() == inline.SubmissionHash() {
			t.Errorf("%s has the same hash", name)
		}
	}
}
