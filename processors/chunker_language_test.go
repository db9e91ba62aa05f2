package processors_test

import (
	"slices"
	"testing"

	"github.com/waymarkhq/waymark/rag/parse"
	"github.com/waymarkhq/waymark/rag/read"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

// The language that a text is written in is metadata of its chunks, unless the sender has said one.
func TestTheLanguageIsMetadata(t *testing.T) {
	parser, err := parse.New(parse.Limits{})
	check(t, err)
	c := newChunker()
	c.Reader = read.New(read.Options{Parser: parser, Splitter: lines{}})
	const text = "The Rhine rises in the Alps and flows north through six countries, as everybody knows."
	for value, lang := range map[string]string{
		`{"text":"` + text + `"}`:                               "lang=en",
		`{"text":"` + text + `","metadata":{"lang":"klingon"}}`: "lang=klingon",
		`{"text":"1 2 3"}`:                                      "",
	} {
		r := stage.Record{Topic: "documents", Partition: home([]byte("doc")), Key: []byte("doc"), Value: []byte(value), Headers: []stage.Header{header("message-id", "m1")}}
		run := chunkerKit(t, c, noRow).Run(stagetest.Raw(r))
		chunks := stagetest.Sent(run, topics.Chunks)
		if len(chunks) == 0 {
			t.Fatalf("%s: no chunks", value)
		}
		if got := chunks[0].Metadata; lang == "" && len(got) > 0 || lang != "" && !slices.Contains(got, lang) || len(got) > 1 {
			t.Errorf("%s: metadata %q", value, got)
		}
	}
}
