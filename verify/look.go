package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/sinks"
)

// run is one comparison.
type run struct {
	*Verifier
	repair    bool
	documents map[string]*document
	findings  map[findingKey]*Finding
	suspects  []sinks.Object // of served chunks that were not found once
	known     int            // documents with a row
	chunks    int
	objects   int
	undecided int
	unsettled error // why it cannot be told what the pipeline is at work on
}

// document is what the first look has shown of a document.
type document struct {
	served  rag.Revision
	count   int           // of served chunks; 0: nothing is served
	present ledger.Bitmap // served chunks that the store has
	asked   ledger.Bitmap // served chunks that were searched for
	strays  map[rag.Revision]bool
	foreign map[string]bool // ids of objects in the served revision that are none of its chunks
}

// has reports whether the chunk is one of those that the document serves.
func (d *document) has(rev rag.Revision, index int) bool {
	return d != nil && d.served == rev && index >= 0 && index < d.count
}

func (d *document) stray(rev rag.Revision) {
	if d.strays == nil {
		d.strays = map[rag.Revision]bool{}
	}
	d.strays[rev] = true
}

type findingKey struct {
	document string
	revision rag.Revision
	kind     Kind
}

// find counts an object that differs.
func (r *run) find(k Kind, documentID string, rev rag.Revision, index int) *Finding {
	key := findingKey{documentID, rev, k}
	f := r.findings[key]
	if f == nil {
		f = &Finding{Kind: k, DocumentID: documentID, Revision: rev}
		r.findings[key] = f
	}
	if index >= 0 && index <= maxIndex {
		f.Chunks = f.Chunks.With(index, index+1)
	}
	f.Objects++
	return f
}

// maxIndex bounds the memory of what is told of objects whose index can be anything.
const maxIndex = 1 << 20

func (r *run) report() Report {
	out := Report{Documents: r.known, Chunks: r.chunks, Objects: r.objects, Undecided: r.undecided}
	for _, f := range r.findings {
		out.Findings = append(out.Findings, *f)
	}
	slices.SortFunc(out.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.DocumentID, b.DocumentID), cmp.Compare(a.Revision.Version, b.Revision.Version),
			cmp.Compare(a.Revision.Generation, b.Revision.Generation), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

// readRows comes before the walk: chunks are in the store before their row serves them.
func (r *run) readRows(ctx context.Context) error {
	err := r.Rows.Each(ctx, func(id string, row *ledger.DocumentRow) error {
		r.documents[id] = &document{served: row.Served.Revision, count: row.Served.Count}
		r.known++
		r.chunks += row.Served.Count
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the document rows: %w", err)
	}
	return nil
}

// walk looks at every object once.
func (r *run) walk(ctx context.Context) error {
	err := r.Store.Scan(ctx, "", func(o sinks.Object) error {
		r.objects++
		c := o.Chunk
		d := r.documents[c.DocumentID]
		if d == nil {
			d = &document{}
			r.documents[c.DocumentID] = d
		}
		switch {
		case d.count == 0 || d.served != c.Revision:
			d.stray(c.Revision)
		case r.proper(o) && d.has(c.Revision, c.Index):
			d.present = d.present.With(c.Index, c.Index+1)
		default:
			if d.foreign == nil {
				d.foreign = map[string]bool{}
			}
			d.foreign[o.ID] = true
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("walk through the store: %w", err)
	}
	return nil
}

// proper reports whether an object has the id of its place.
func (r *run) proper(o sinks.Object) bool { return o.ID == r.id(o.Chunk) }

func (r *run) id(c rag.Chunk) string {
	return rag.ChunkID(r.Tenant, c.DocumentID, c.Revision, c.Index).String()
}

// serves reports whether a document still serves what the first look saw it serve, by the row as it is now.
func (r *run) serves(ctx context.Context, documentID string, rev rag.Revision) (bool, error) {
	row, err := r.Rows.Get(ctx, documentID)
	if err != nil {
		return false, fmt.Errorf("read the row of a document: %w", err)
	}
	return row != nil && row.Served.Revision == rev && row.Served.Count > 0, nil
}

func (r *run) fresh(ctx context.Context) error {
	if err := r.Rows.Fresh(ctx); err != nil {
		return fmt.Errorf("wait for the newest document rows: %w", err)
	}
	return nil
}
