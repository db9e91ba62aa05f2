package read_test

import (
	"testing"

	"github.com/waymarkhq/waymark/rag/parse"
	"github.com/waymarkhq/waymark/rag/read"
	"github.com/waymarkhq/waymark/rag/split"
)

// Every chunk comes with the text of its parent, in one window and in many.
func TestParentsComeWithTheirChunks(t *testing.T) {
	parser, err := parse.New(parse.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	splitter, err := split.New(split.Options{Tokens: 60, Overlap: 10, Parent: 300})
	if err != nil {
		t.Fatal(err)
	}
	r := read.NewWithWindow(read.Options{Parser: parser, Splitter: splitter, MaxBytes: 64 << 20, MaxPieces: 1_000_000}, window)
	for _, text := range []string{prose(window), prose(5 * window)} {
		d, err := r.Read(t.Context(), read.Input{Open: read.Bytes([]byte(text)), Size: int64(len(text)), Name: "a.txt"})
		if err != nil {
			t.Fatal(err)
		}
		given := 0
		err = d.Texts(t.Context(), func(i int, chunk, parent string) error {
			p := d.Pieces[i]
			if i != given || chunk != text[p.Start:p.End] || parent != text[p.Parent.Start:p.Parent.End] || len(parent) < len(chunk) {
				t.Fatalf("chunk %d comes as number %d, in %q", i, given, parent)
			}
			given++
			return nil
		})
		if err != nil || given != len(d.Pieces) || given < 10 {
			t.Errorf("%d of %d chunks: %v", given, len(d.Pieces), err)
		}
	}
}
