package flow

// Recorder is a Writer that keeps what is written to it, to write it somewhere else later.
type Recorder struct {
	ops  []func(Writer)
	full func() bool
}

// NewRecorder returns a Recorder for what will be written to w: it is full when w is.
func NewRecorder(w Writer) *Recorder { return &Recorder{full: w.Full} }

// Replay writes what was recorded to w, and forgets it.
func (r *Recorder) Replay(w Writer) {
	ops := r.ops
	r.ops = nil
	for _, op := range ops {
		op(w)
	}
}

// Empty reports whether nothing was recorded.
func (r *Recorder) Empty() bool { return len(r.ops) == 0 }

func (r *Recorder) add(op func(Writer)) { r.ops = append(r.ops, op) }

// Page records Page.
func (r *Recorder) Page(n int) { r.add(func(w Writer) { w.Page(n) }) }

// Heading records Heading.
func (r *Recorder) Heading(level int) { r.add(func(w Writer) { w.Heading(level) }) }

// Paragraph records Paragraph.
func (r *Recorder) Paragraph() { r.add(Writer.Paragraph) }

// Item records Item.
func (r *Recorder) Item(depth int, marker string) { r.add(func(w Writer) { w.Item(depth, marker) }) }

// Code records Code.
func (r *Recorder) Code() { r.add(Writer.Code) }

// Table records Table.
func (r *Recorder) Table() { r.add(Writer.Table) }

// Row records Row.
func (r *Recorder) Row() { r.add(Writer.Row) }

// Cell records Cell.
func (r *Recorder) Cell() { r.add(Writer.Cell) }

// EndTable records EndTable.
func (r *Recorder) EndTable() { r.add(Writer.EndTable) }

// Text records Text.
func (r *Recorder) Text(s string) { r.add(func(w Writer) { w.Text(s) }) }

// Later records text that is asked for when it is replayed.
func (r *Recorder) Later(s func() string) { r.add(func(w Writer) { w.Text(s()) }) }

// Verbatim records Verbatim.
func (r *Recorder) Verbatim(s string) { r.add(func(w Writer) { w.Verbatim(s) }) }

// Break records Break.
func (r *Recorder) Break() { r.add(Writer.Break) }

// Full reports whether the Writer behind is full.
func (r *Recorder) Full() bool { return r.full() }
