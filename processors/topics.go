package processors

import (
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/stage"
)

// Topics are the topics and tables of the pipeline with the codecs of their values. Documents and DeadLetters carry
// bytes that their producers, or their readers, own: they pass through undecoded.
type Topics struct {
	Documents   stage.Topic[[]byte]
	Replays     stage.Topic[rag.Replay]
	Chunks      stage.Topic[rag.Chunk]
	Vectors     stage.Topic[rag.Vector]
	Progress    stage.Topic[rag.Progress]
	Events      stage.Topic[rag.Event]
	DeadLetters stage.Topic[[]byte]
	Commands    stage.Topic[rag.Command]

	ChunkerTable     stage.Topic[ledger.ChunkerRow]
	EmbedderTable    stage.Topic[wire.CachedVector]
	IndexerTable     stage.Topic[ledger.DocumentRow]
	TrackerTable     stage.Topic[ledger.TrackerRow]
	DeadLettersTable stage.Topic[ledger.LetterRow]
}

// Bytes is the codec of topics whose bytes pass through.
type Bytes struct{}

// Encode returns b.
func (Bytes) Encode(b []byte) ([]byte, error) { return b, nil }

// Decode returns b.
func (Bytes) Decode(b []byte) ([]byte, error) { return b, nil }

// Place says where records stand: the epoch of the cluster and the home partition of a key.
type Place struct {
	// Documents is the name of the documents topic.
	Documents string
	Epoch     int
	// Home is the partition of a key.
	Home func(key []byte) int32
}

// version of a record at an offset; an error is an outage: the epoch or the log has outgrown what a version can hold.
func (p Place) version(offset int64) (rag.Version, error) {
	v, err := rag.NewVersion(p.Epoch, offset)
	if err != nil {
		return 0, stage.Outage(dependencyEpoch, 0, err)
	}
	return v, nil
}

// committedVersion is the version below which every record is committed; 0 where that is not known.
func (p Place) committedVersion(offset int64) rag.Version {
	if offset < 0 {
		return 0
	}
	v, err := rag.NewVersion(p.Epoch, offset)
	if err != nil {
		return 0
	}
	return v
}

// of is the position of a record of the current epoch.
func (p Place) of(r stage.Record) rag.Position {
	return rag.Position{Topic: r.Topic, Epoch: p.Epoch, Partition: r.Partition, Offset: r.Offset}
}

// position of the document record of a subject.
func (p Place) position(s rag.Subject) rag.Position {
	return rag.Position{Topic: p.Documents, Epoch: s.Revision.Version.Epoch(), Partition: s.Partition, Offset: s.Revision.Version.Offset()}
}

// event is one line of a submission's timeline.
func (t Topics) event(stageName string, s rag.Subject, status rag.Status, at time.Time, chunks int, f *rag.Failure) stage.Output {
	return t.Events.Record(rag.EventKey(s.DocumentID, s.MessageID),
		rag.Event{Subject: s, Stage: stageName, Status: status, At: at, Chunks: chunks, Failure: f})
}

// verdict tells the indexer how a version ends, or that it has to be tried again.
func (t Topics) verdict(s rag.Subject, at time.Time, status rag.Status, f *rag.Failure) stage.Output {
	return t.Progress.Record(s.DocumentID, rag.Progress{Kind: rag.ProgressVerdict, Subject: s, At: at, Status: status, Failure: f})
}

// failureOf says in the ledger's words why a message failed; transient ones ask for a retry.
func failureOf(stageName string, class stage.Class, err error, fallback string) (*rag.Failure, rag.Status) {
	f := &rag.Failure{Stage: stageName, Class: rag.ClassMessage, Reason: stage.ReasonOf(err, fallback), Message: sentence(err)}
	if class == stage.ClassMessage {
		return f, rag.StatusDead
	}
	f.Class = rag.ClassTransient
	return f, rag.StatusRetrying
}

// dead is a failure that is not tried again, whatever its class was.
func dead(f *rag.Failure) *rag.Failure {
	d := *f
	d.Class = rag.ClassMessage
	return &d
}
