package checker

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Meaning is what a document record says.
type Meaning struct {
	Text string // what has to be served
	Dies bool   // it can never be served
	// NoID says that its key or its message id is unusable: it dies under the id of its position.
	NoID bool
	// Content tells two submissions with the same text apart whose title, source or metadata differ.
	Content string
}

// Read tells what the value of a record means; the record is not a delete.
type Read func(*kgo.Record) Meaning

// Submission is one version of a document: a record in its home partition, with what the model wants of it.
type Submission struct {
	DocumentID, MessageID string
	Meaning
	Delete  bool
	Version int64
	Record  *kgo.Record
	// Allowed are the final statuses that the model allows.
	Allowed []string
}

// Model is the state of the documents as a single reader of the log sees it, and what that allows each submission.
type Model struct {
	Submissions []*Submission
	// Served is, per document, the last submission that ends well; a delete serves nothing.
	Served map[string]*Submission
	// Duplicates counts the records that repeat a message id.
	Duplicates int
	byVersion  map[string]map[int64]*Submission
}

const versionOfEpoch = 1 << 40

// NewModel reads the records of the documents topic. epoch is that of the run.
func NewModel(records []*kgo.Record, partitions, epoch int, read Read) *Model {
	m := &Model{Served: map[string]*Submission{}, byVersion: map[string]map[int64]*Submission{}}
	home := kgo.StickyKeyPartitioner(nil).ForTopic("documents") // murmur2, as Kafka's own producer has it
	seen := map[[2]string]*Submission{}
	of := map[string][]*Submission{}
	for _, r := range records {
		if r.Key != nil && home.Partition(&kgo.Record{Key: r.Key}, partitions) != int(r.Partition) {
			continue // it is forwarded, and counts where it lands
		}
		s := submission(r, epoch, read)
		id := [2]string{s.DocumentID, s.MessageID}
		switch first := seen[id]; {
		case first == nil:
			seen[id] = s
		case first.Delete == s.Delete && first.Content == s.Content:
			m.Duplicates++
			continue
		default: // the id stands for something else already
			s.MessageID, s.Dies = foreign(r, epoch), true
		}
		m.Submissions = append(m.Submissions, s)
		of[s.DocumentID] = append(of[s.DocumentID], s)
		if m.byVersion[s.DocumentID] == nil {
			m.byVersion[s.DocumentID] = map[int64]*Submission{}
		}
		m.byVersion[s.DocumentID][s.Version] = s
	}
	for id, list := range of {
		m.Served[id] = judge(list)
	}
	return m
}

// judge is the whole model: a version that dies changes nothing, any other one is served from then on.
func judge(list []*Submission) (served *Submission) {
	for i, s := range list {
		switch {
		case s.Dies:
			s.Allowed = []string{"dead"}
		case s.Delete:
			s.Allowed = []string{"deleted"}
		case served != nil && !served.Delete && served.Content == s.Content:
			s.Allowed = []string{"indexed", "unchanged"}
		default:
			s.Allowed = []string{"indexed"}
		}
		if slices.ContainsFunc(list[i+1:], func(later *Submission) bool { return !later.Dies }) {
			s.Allowed = append(s.Allowed, "superseded")
		}
		if !s.Dies {
			served = s
		}
	}
	return served
}

// foreign is the id of a record that brings none.
func foreign(r *kgo.Record, epoch int) string {
	return fmt.Sprintf("%s@%d-%d-%d", r.Topic, epoch, r.Partition, r.Offset)
}

func submission(r *kgo.Record, epoch int, read Read) *Submission {
	s := &Submission{DocumentID: string(r.Key), MessageID: foreign(r, epoch), Delete: r.Value == nil && r.Key != nil, Version: int64(epoch)*versionOfEpoch + r.Offset + 1, Record: r}
	if !s.Delete {
		s.Meaning = read(r)
		if s.Content == "" {
			s.Content = string(r.Value)
		}
	}
	if s.NoID {
		s.DocumentID, s.Dies = foreign(r, epoch), true
		return s
	}
	if id, ok := header(r, "message-id"); ok {
		s.MessageID = id
	} else if id := jsonMessageID(r.Value); id != "" {
		s.MessageID = id
	} else if origin, ok := header(r, "waymark-origin"); ok {
		s.MessageID = origin
	}
	return s
}

func jsonMessageID(value []byte) string {
	var v struct {
		MessageID string `json:"message_id"`
	}
	_ = json.Unmarshal(value, &v) // what is no JSON has no such field
	return v.MessageID
}

// ReadJSON is the Read of documents whose value is the JSON of the API with a text; everything else dies.
func ReadJSON(r *kgo.Record) Meaning {
	var v struct {
		Text     string         `json:"text"`
		Title    string         `json:"title"`
		Source   string         `json:"source"`
		Metadata map[string]any `json:"metadata"`
	}
	if err := json.Unmarshal(r.Value, &v); err != nil || v.Text == "" {
		return Meaning{Dies: true}
	}
	return Meaning{Text: v.Text, Content: fmt.Sprintf("%q %q %q %v", v.Text, v.Title, v.Source, v.Metadata)}
}

// at is the submission that made a version, nil if the log has none.
func (m *Model) at(documentID string, version int64) *Submission {
	return m.byVersion[documentID][version]
}
