package apitest

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/sinks"
)

// World is a set of fakes that fit together: what one of them changes, the others show.
type World struct {
	Publisher *Publisher
	Documents *Documents
	Messages  *Messages
	Letters   *Letters
	Commander *Commander
	Searcher  *Searcher
	Embedder  *Embedder
	Readiness *Readiness
	Freshness *Freshness
	Stats     *Stats
	Registry  *prometheus.Registry
}

// NewWorld makes an empty one.
func NewWorld() *World {
	letters := &Letters{}
	return &World{
		Publisher: &Publisher{}, Documents: &Documents{}, Messages: &Messages{}, Letters: letters,
		Commander: &Commander{Letters: letters}, Searcher: &Searcher{}, Embedder: &Embedder{}, Readiness: &Readiness{},
		Freshness: &Freshness{}, Stats: &Stats{}, Registry: prometheus.NewRegistry(),
	}
}

// Dependencies are the fakes as the API takes them.
func (w *World) Dependencies() api.Dependencies {
	return api.Dependencies{
		Publisher: w.Publisher, Documents: w.Documents, DocumentLister: w.Documents, Messages: w.Messages,
		Letters: w.Letters, LetterLister: w.Letters, Payloads: w.Letters, Commander: w.Commander, Searcher: w.Searcher,
		Embedder: w.Embedder, Readiness: w.Readiness, Freshness: w.Freshness, Stats: w.Stats,
		Gatherer: w.Registry, Registerer: w.Registry,
	}
}

// Version packs an offset in epoch 0.
func Version(offset int64) rag.Version {
	v, err := rag.NewVersion(0, offset)
	if err != nil {
		panic(err)
	}
	return v
}

// AddIndexed puts a document with chunks of the given texts that is served as of its version.
func (w *World) AddIndexed(id string, version rag.Version, at time.Time, texts ...string) {
	rev := rag.Revision{Version: version}
	message := fmt.Sprintf("message-of-%s-%d", id, version)
	w.Documents.Put(id, &ledger.DocumentRow{
		Fence: version, Served: ledger.Served{Revision: rev, Count: len(texts), At: at},
		Finals: map[string]ledger.Final{message: {Revision: rev, Status: rag.StatusIndexed, Count: len(texts), At: at}},
	})
	w.Messages.Put(Timeline(id, message, rev, at, rag.StatusAccepted, rag.StatusChunked, rag.StatusEmbedded, rag.StatusIndexed))
	start := 0
	for i, text := range texts {
		chunk := rag.Chunk{
			Subject: rag.Subject{DocumentID: id, MessageID: message, Revision: rev}, Index: i, Count: len(texts), Text: text,
			Start: start, End: start + len(text), Title: "About " + id, Metadata: rag.Metadata{"lang=en"},
		}
		start += len(text)
		w.Searcher.Hits = append(w.Searcher.Hits, sinks.Hit{ID: rag.ChunkID("", id, rev, i).String(), Chunk: chunk, Score: 1 / float64(len(w.Searcher.Hits)+1)})
	}
}

// Timeline is the row of a submission that met the statuses, one a second from at on.
func Timeline(documentID, messageID string, rev rag.Revision, at time.Time, statuses ...rag.Status) *ledger.TrackerRow {
	stages := map[rag.Status]string{rag.StatusAccepted: "chunker", rag.StatusChunked: "chunker"}
	var row *ledger.TrackerRow
	for i, s := range statuses {
		stage, ok := stages[s]
		if !ok {
			stage = "indexer"
		}
		row = ledger.ApplyEvent(row, rag.Event{
			Subject: rag.Subject{DocumentID: documentID, MessageID: messageID, Revision: rev},
			Stage:   stage, Status: s, At: at.Add(time.Duration(i) * time.Second),
		})
	}
	return row
}

// AddDead puts a document whose only version died, with its letter waiting.
func (w *World) AddDead(id string, offset int64, at time.Time, failure rag.Failure, content []byte) string {
	rev := rag.Revision{Version: Version(offset)}
	message := fmt.Sprintf("message-of-%s-%d", id, rev.Version)
	w.Documents.Put(id, &ledger.DocumentRow{
		Finals: map[string]ledger.Final{message: {Revision: rev, Status: rag.StatusDead, Failure: &failure, At: at}},
	})
	row := Timeline(id, message, rev, at, rag.StatusAccepted, rag.StatusDead)
	row.Failure = &failure
	w.Messages.Put(row)
	position := rag.Position{Topic: "waymark.documents", Offset: offset}
	w.Letters.Put(ledger.ApplyLetter(nil, rag.Letter{
		ID: position.String(), Subject: rag.Subject{DocumentID: id, MessageID: message, Revision: rev}, Position: position, Failure: failure,
		Original:    rag.Raw{Key: []byte(id), Value: content, Headers: []rag.Header{{Key: []byte("content-type"), Value: []byte("application/pdf")}}},
		FirstFailed: at, LastFailed: at,
	}))
	return position.String()
}
