package checker

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/wire"
)

// sham is a run of a pipeline that never was: a log, answers of an API and a store, which a test makes wrong in one thing.
type sham struct {
	t        *testing.T
	broker   string
	client   *kgo.Client
	messages map[string]*Message
	hits     map[string][]Hit
	letters  []Letter
	objects  map[string][]Object
	target   Target
}

// newSham has a document with two versions of which the second is served, a deleted one, and one that died.
func newSham(t *testing.T) *sham {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "waymark.documents", "waymark.events", "waymark.dead-letters", "waymark-indexer-table"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	s := &sham{t: t, broker: cluster.ListenAddrs()[0], messages: map[string]*Message{}, hits: map[string][]Hit{}, objects: map[string][]Object{}}
	if s.client, err = kgo.NewClient(kgo.SeedBrokers(s.broker)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	s.submit("a", "m1", `{"text": "the first text"}`, "indexed")
	s.submit("a", "m2", `{"text": "the second text"}`, "indexed")
	s.submit("b", "m3", `{"text": "soon deleted"}`, "superseded")
	s.submit("b", "m4", "", "deleted")
	poison := s.submit("c", "m5", `{"text": "no e`, "dead")
	for _, h := range hitsOf("the second text", 9, 2) {
		h.DocumentID, h.Version = "a", 2
		s.hits["a"] = append(s.hits["a"], h)
		s.objects["a"] = append(s.objects["a"], Object{Version: 2, Number: h.Index, Start: h.Start, End: h.End, Text: h.Text, Vector: []float32{1}})
	}
	s.letters = []Letter{{ID: "waymark.documents@0-0-4", MessageID: "m5", DocumentID: "c", State: "waiting"}}
	s.letter(poison, "0", "")
	s.row("a", 3)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.target = Target{Broker: s.broker, API: API{Base: server.URL, Client: server.Client()}, Store: t.TempDir() + "/store.db",
		Embed: func(string, int) []float32 { return []float32{1} }}
	return s
}

func (s *sham) produce(r *kgo.Record) *kgo.Record {
	s.t.Helper()
	if err := s.client.ProduceSync(s.t.Context(), r).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *sham) submit(key, message, value, status string) *kgo.Record {
	s.t.Helper()
	r := s.produce(record(key, message, value))
	s.messages[message] = &Message{MessageID: message, DocumentID: key, Version: r.Offset + 1, Status: status, Final: true}
	s.event(key, message, r.Offset+1, status)
	return r
}

func (s *sham) event(key, message string, version int64, status string) {
	s.t.Helper()
	s.said("indexer", key, message, version, status)
}

func (s *sham) said(by, key, message string, version int64, status string) {
	s.t.Helper()
	b, err := wire.NewCodecs(time.Now).Event.Encode(rag.Event{Stage: by, Status: rag.Status(status), At: time.Now(),
		Subject: rag.Subject{DocumentID: key, MessageID: message, Revision: rag.Revision{Version: rag.Version(version)}}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.produce(&kgo.Record{Topic: "waymark.events", Key: []byte(key), Value: b})
}

func (s *sham) row(key string, applied int64) {
	s.t.Helper()
	b, err := wire.NewCodecs(time.Now).DocumentRow.Encode(ledger.DocumentRow{Applied: rag.Version(applied)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.produce(&kgo.Record{Topic: "waymark-indexer-table", Key: []byte(key), Value: b})
}

// letter writes the letter of a record, with something behind its value.
func (s *sham) letter(of *kgo.Record, generation, more string) {
	s.t.Helper()
	h := func(k, v string) kgo.RecordHeader { return kgo.RecordHeader{Key: k, Value: []byte(v)} }
	headers := append([]kgo.RecordHeader{}, of.Headers...)
	headers = append(headers, h("__connect.errors.topic", of.Topic), h("__connect.errors.partition", strconv.Itoa(int(of.Partition))),
		h("__connect.errors.offset", fmt.Sprint(of.Offset)), h("waymark-generation", generation), h("waymark-key", string(of.Key)),
		h("waymark-original-headers", strconv.Itoa(len(of.Headers))))
	s.produce(&kgo.Record{Topic: "waymark.dead-letters", Key: fmt.Appendf(nil, "waymark.documents@0-%d-%d", of.Partition, of.Offset),
		Value: append(append([]byte{}, of.Value...), more...), Headers: headers})
}

func (s *sham) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer any
	switch {
	case strings.HasPrefix(r.URL.Path, "/v1/messages/"):
		m := s.messages[strings.TrimPrefix(r.URL.Path, "/v1/messages/")]
		if m == nil {
			http.Error(w, "not-visible-yet", http.StatusNotFound)
			return
		}
		answer = m
	case r.URL.Path == "/v1/search":
		answer = map[string]any{"hits": s.hits[r.URL.Query().Get("document_id")]}
	default:
		answer = map[string]any{"dead_letters": s.letters}
	}
	_ = json.NewEncoder(w).Encode(answer) // the test sees what is missing
}

// check writes the store and checks.
func (s *sham) check() string {
	s.t.Helper()
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: s.target.Store}).String())
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	exec := func(query string, args ...any) {
		if _, err := db.ExecContext(s.t.Context(), query, args...); err != nil {
			s.t.Fatal(err)
		}
	}
	exec(`CREATE TABLE chunk (key INTEGER PRIMARY KEY, id BLOB, document TEXT, version INTEGER, generation INTEGER, number INTEGER, start INTEGER, "end" INTEGER, text TEXT)`)
	exec(`CREATE TABLE vector (chunk INTEGER PRIMARY KEY, value BLOB)`)
	for id, objects := range s.objects {
		for _, o := range objects {
			exec(`INSERT INTO chunk (document, version, generation, number, start, "end", text) VALUES (?, ?, ?, ?, ?, ?, ?)`, id, o.Version, o.Generation, o.Number, o.Start, o.End, o.Text)
			bits := math.Float32bits(o.Vector[0])
			exec(`INSERT INTO vector VALUES (last_insert_rowid(), ?)`, []byte{byte(bits), byte(bits >> 8), byte(bits >> 16), byte(bits >> 24)})
		}
	}
	r, err := Check(s.t.Context(), s.target)
	if err != nil {
		s.t.Fatal(err)
	}
	if r.Submissions < 5 || r.Chunks == 0 && len(s.hits) > 0 || r.Events < 5 {
		s.t.Errorf("too little was looked at: %s", r)
	}
	return strings.Join(r.Violations, "\n")
}

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(s *sham)
		says string
	}{
		"sound":                 {func(*sham) {}, ""},
		"a status missing":      {func(s *sham) { delete(s.messages, "m1") }, "I1: m1 of a has no status"},
		"not final":             {func(s *sham) { s.messages["m1"].Final, s.messages["m1"].Status = false, "embedded" }, "I1: m1 of a"},
		"dead without a reason": {func(s *sham) { s.messages["m2"].Status = "dead" }, "I1: m2 of a"},
		"the latest superseded": {func(s *sham) { s.messages["m4"].Status = "superseded" }, "I1: m4 of b"},
		"another version":       {func(s *sham) { s.messages["m2"].Version++ }, "I1: m2 of a has the version 3"},
		"two finals":            {func(s *sham) { s.event("a", "m1", 1, "superseded") }, `I1: "m1" of "a" in generation 0 has two finals`},
		"a final said again":    {func(s *sham) { s.event("a", "m1", 1, "indexed") }, ""},
		"another author":        {func(s *sham) { s.said("chunker", "c", "m5", 5, "dead") }, `I1: the chunker says that "m5" of "c" in generation 0 is dead`},
		"a gap":                 {func(s *sham) { s.hits["a"] = s.hits["a"][1:] }, "I2: a: chunk 1 stands at place 0"},
		"nothing served":        {func(s *sham) { delete(s.hits, "a") }, "I2: a: nothing is served"},
		"a deleted one served":  {func(s *sham) { s.hits["b"] = hitsOf("soon deleted", 9, 2) }, "I2: b: 2 chunks are served, the model wants none"},
		"the old text": {func(s *sham) {
			s.hits["a"] = hitsOf("the first text", 9, 2)
			for i := range s.hits["a"] {
				s.hits["a"][i].DocumentID = "a"
			}
		}, "I2: a"},
		"an old object":     {func(s *sham) { s.objects["a"][0].Version = 1 }, "I3: a: the store holds a chunk of version 1"},
		"a stranger's":      {func(s *sham) { s.objects["z"] = s.objects["a"] }, `I3: the store holds 2 objects of "z"`},
		"left after delete": {func(s *sham) { s.objects["b"] = s.objects["a"] }, "I2: b: the store holds 2 objects"},
		"a wrong vector":    {func(s *sham) { s.objects["a"][1].Vector = []float32{2} }, "I4: a: the vector of chunk 1"},
		"no letter":         {func(s *sham) { s.letters = nil }, "I6: the API shows 0 letters"},
		"two letters":       {func(s *sham) { s.letters = append(s.letters, s.letters[0]) }, "I6: the API shows 2 letters"},
		"a letter too many": {func(s *sham) { s.letters = append(s.letters, Letter{ID: "waymark.documents@0-0-0", State: "waiting"}) }, "its version is not dead"},
		"a resolved letter": {func(s *sham) { s.letters = append(s.letters, Letter{ID: "waymark.documents@0-0-0", State: "resolved"}) }, ""},
		"other bytes": {func(s *sham) {
			s.letter(&kgo.Record{Topic: "waymark.documents", Key: []byte("c"), Value: []byte("x"), Offset: 4}, "1", "")
		}, "I6: the value of letter"},
		"other headers": {func(s *sham) {
			s.letter(&kgo.Record{Topic: "waymark.documents", Key: []byte("c"), Value: []byte(`{"text": "no e`), Offset: 4}, "1", "")
		}, "I6: the headers of letter"},
		"of no record": {func(s *sham) {
			s.letter(&kgo.Record{Topic: "waymark.documents", Key: []byte("c"), Offset: 99}, "0", "")
		}, "which is not in the log"},
		"an old row last":   {func(s *sham) { s.row("a", 2) }, `I7: the last row of "a" in the table is that of 2, there was one of 3`},
		"a late row mended": {func(s *sham) { s.row("a", 2); s.row("a", 3) }, ""},
		"unreadable event":  {func(s *sham) { s.produce(&kgo.Record{Topic: "waymark.events", Key: []byte("x"), Value: []byte("x")}) }, "cannot be read"},
		"a stranger's event": {func(s *sham) {
			s.target.Strangers = "x-"
			s.produce(&kgo.Record{Topic: "waymark.events", Key: []byte("x-1"), Value: []byte("x")})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSham(t)
			c.harm(s)
			if got := s.check(); (c.says == "") != (got == "") || !strings.Contains(got, c.says) {
				t.Errorf("it says\n%s\nwant %q", got, c.says)
			}
		})
	}
}

func TestReadersNoticeWhatGoesBack(t *testing.T) {
	for name, c := range map[string]struct {
		see  func(r *Readers)
		says string
	}{
		"sound": {func(r *Readers) {
			r.sawHits(r.known("a", [2]string{}), "a", sight{hits: []Hit{{DocumentID: "a", Version: 1, Text: "the first text", End: 14}}})
			r.sawHits(r.known("a", [2]string{}), "a", sight{hits: []Hit{{DocumentID: "a", Version: 2, Text: "the second text", End: 15}}})
		}, ""},
		"an older version": {func(r *Readers) {
			r.sawHits(r.known("a", [2]string{}), "a", sight{hits: []Hit{{DocumentID: "a", Version: 2, Text: "the second text", End: 15}}})
			r.sawHits(r.known("a", [2]string{}), "a", sight{hits: []Hit{{DocumentID: "a", Version: 1, Text: "the first text", End: 14}}})
		}, "I7: a was served as of version 2, and then as of 1"},
		"a part": {func(r *Readers) {
			r.sawHits(r.known("a", [2]string{}), "a", sight{hits: []Hit{{DocumentID: "a", Version: 2, Text: "the", End: 3}}})
		}, "I2: a reader saw something else"},
		"nothing any more": {func(r *Readers) {
			r.sawHits(r.known("a", [2]string{}), "a", sight{hits: []Hit{{DocumentID: "a", Version: 2, Text: "the second text", End: 15}}})
			r.sawHits(r.known("a", [2]string{}), "a", sight{})
		}, "I2: a reader saw nothing of a"},
		"nothing after a delete": {func(r *Readers) {
			r.sawHits(r.known("b", [2]string{}), "b", sight{hits: []Hit{{DocumentID: "b", Version: 3, Text: "soon deleted", End: 12}}})
			r.sawHits(r.known("b", [2]string{}), "b", sight{})
		}, ""},
		"no such version": {func(r *Readers) {
			r.sawHits(r.known("a", [2]string{}), "a", sight{hits: []Hit{{DocumentID: "a", Version: 77, Text: "x", End: 1}}})
		}, "which no record made"},
		"a status back": {func(r *Readers) {
			r.sawMessage(r.known("", [2]string{"a", "m1"}), Message{DocumentID: "a", MessageID: "m1", Status: "embedded"})
			r.sawMessage(r.known("", [2]string{"a", "m1"}), Message{DocumentID: "a", MessageID: "m1", Status: "chunked"})
		}, "I7: m1 of a went from"},
		"another final": {func(r *Readers) {
			r.sawMessage(r.known("", [2]string{"a", "m1"}), Message{DocumentID: "a", MessageID: "m1", Status: "dead"})
			r.sawMessage(r.known("", [2]string{"a", "m1"}), Message{DocumentID: "a", MessageID: "m1", Status: "indexed"})
		}, "I7: the final of m1 of a was dead and became indexed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSham(t)
			r := &Readers{seen: map[observed]sight{}, statuses: map[[2]string]position{}, served: map[string]int64{}, emptied: map[string]bool{}}
			c.see(r)
			s.target.Readers = r
			if got := s.check(); (c.says == "") != (got == "") || !strings.Contains(got, c.says) {
				t.Errorf("it says\n%s\nwant %q", got, c.says)
			}
		})
	}
}
