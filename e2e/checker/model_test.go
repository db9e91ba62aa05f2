package checker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"
)

func record(key, message, value string) *kgo.Record {
	r := &kgo.Record{Topic: "waymark.documents", Key: []byte(key)}
	if value != "" {
		r.Value = []byte(value)
	}
	if message != "" {
		r.Headers = []kgo.RecordHeader{{Key: "message-id", Value: []byte(message)}}
	}
	return r
}

// logOf gives records of one partition their offsets.
func logOf(records ...*kgo.Record) []*kgo.Record {
	for i, r := range records {
		r.Offset = int64(i)
	}
	return records
}

func TestModel(t *testing.T) {
	text := func(s string) string { return fmt.Sprintf(`{"text": %q}`, s) }
	m := NewModel(logOf(
		record("a", "m1", text("one")),
		record("a", "m2", text("two")),
		record("a", "m1", text("one")),   // sent again
		record("a", "m2", text("three")), // the id stands for something else
		record("a", "m3", text("two")),   // the same content
		record("a", "m4", `{"text": `),   // poison
		record("b", "m1", text("of another document")),
		record("b", "m2", ""), // a delete
		record("c", "", text("without an id")),
	), 1, 2, ReadJSON)
	want := []string{
		"a m1 [indexed superseded]", "a m2 [indexed superseded]", "a waymark.documents@2-0-3 [dead superseded]",
		"a m3 [indexed unchanged]", "a m4 [dead]", "b m1 [indexed superseded]", "b m2 [deleted]", "c waymark.documents@2-0-8 [indexed]",
	}
	var got []string
	for _, s := range m.Submissions {
		got = append(got, fmt.Sprint(s.DocumentID, " ", s.MessageID, " ", s.Allowed))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if m.Duplicates != 1 || m.Served["a"].Text != "two" || !m.Served["b"].Delete || m.Served["c"].Version != 2*versionOfEpoch+9 {
		t.Errorf("duplicates %d, served %+v", m.Duplicates, m.Served)
	}
}

func TestForwardedRecordsCountWhereTheyLand(t *testing.T) {
	at := func(partition int32, offset int64, headers ...kgo.RecordHeader) *kgo.Record {
		r := record("a", "", `{"text": "x"}`)
		r.Partition, r.Offset, r.Headers = partition, offset, headers
		return r
	}
	home := kgo.StickyKeyPartitioner(nil).ForTopic("").Partition(record("a", "", ""), 2)
	origin := kgo.RecordHeader{Key: "waymark-origin", Value: []byte("waymark.documents@0-1-7")}
	m := NewModel([]*kgo.Record{at(int32(home), 3, origin), at(int32(1-home), 7)}, 2, 0, ReadJSON)
	if len(m.Submissions) != 1 || m.Submissions[0].MessageID != "waymark.documents@0-1-7" || m.Submissions[0].Version != 4 {
		t.Errorf("%+v", m.Submissions)
	}
}

// hitsOf cuts a text into chunks with an overlap, as a splitter may.
func hitsOf(text string, size, overlap int) (hits []Hit) {
	for from := 0; from < len(text); from += size - overlap {
		to := min(from+size, len(text))
		hits = append(hits, Hit{DocumentID: "d", Index: len(hits), Version: 1, Text: text[from:to], Start: from, End: to})
		if to == len(text) {
			break
		}
	}
	return hits
}

func TestCheckServed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z]([a-z ]{0,60}[a-z])?`).Draw(t, "text")
		size := rapid.IntRange(4, 20).Draw(t, "size")
		hits := hitsOf(text, size, rapid.IntRange(0, 3).Draw(t, "overlap"))
		if err := CheckServed("d", text, hits); err != nil {
			t.Fatalf("a sound answer: %v", err)
		}
		i := rapid.IntRange(0, len(hits)-1).Draw(t, "place")
		broken := slices.Clone(hits)
		what := rapid.SampledFrom([]string{"missing", "twice", "version", "text", "shifted", "document"}).Draw(t, "what")
		switch what {
		case "missing":
			broken = slices.Delete(broken, i, i+1)
		case "twice":
			broken = slices.Insert(broken, i, hits[i])
		case "version":
			if len(hits) == 1 {
				return
			}
			broken[i].Version++
		case "text":
			broken[i].Text += "x"
		case "shifted":
			broken[i].Start++
		case "document":
			broken[i].DocumentID = "other"
		}
		if CheckServed("d", text, broken) == nil {
			t.Fatalf("%s at %d of %d is not seen", what, i, len(hits))
		}
	})
}

func TestCheckServedLeavesOutOnlyWhiteSpace(t *testing.T) {
	text := "one  two"
	sound := []Hit{{DocumentID: "d", Version: 1, Text: "one", End: 3}, {DocumentID: "d", Index: 1, Version: 1, Text: "two", Start: 5, End: 8}}
	if err := CheckServed("d", text, sound); err != nil {
		t.Error(err)
	}
	sound[1].Text, sound[1].Start = "wo", 6
	if CheckServed("d", text, sound) == nil {
		t.Error("a letter in no chunk is not seen")
	}
}

func TestCheckStored(t *testing.T) {
	hits := hitsOf("some text that is cut", 8, 2)
	objects := func() (out []Object) {
		for _, h := range hits {
			out = append(out, Object{Version: 1, Number: h.Index, Start: h.Start, End: h.End, Text: h.Text, Vector: []float32{1, 2}})
		}
		return out
	}
	if err := checkStored("d", objects(), hits); err != nil {
		t.Error(err)
	}
	embed := func(string, int) []float32 { return []float32{1, 2} }
	if err := checkVectors("d", objects(), embed); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func([]Object) []Object{
		"one of an older version": func(o []Object) []Object { o[1].Version = 0; return o },
		"one more":                func(o []Object) []Object { return append(o, o[0]) },
		"one missing":             func(o []Object) []Object { return o[1:] },
		"another generation":      func(o []Object) []Object { o[1].Generation = 1; return o },
		"another text":            func(o []Object) []Object { o[1].Text = "x"; return o },
	} {
		if checkStored("d", change(objects()), hits) == nil {
			t.Errorf("%s is not seen", name)
		}
	}
	for name, change := range map[string]func(*Object){
		"another vector": func(o *Object) { o.Vector = []float32{1, 3} },
		"no vector":      func(o *Object) { o.Vector = nil },
	} {
		broken := objects()
		change(&broken[0])
		if checkVectors("d", broken, embed) == nil {
			t.Errorf("%s is not seen", name)
		}
	}
}
