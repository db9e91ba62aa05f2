// Package office reads Word, PowerPoint and Excel documents (Office Open XML).
package office

import (
	"context"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/waymarkhq/waymark/rag/parse/archive"
	"github.com/waymarkhq/waymark/rag/parse/flow"
)

// Word reads a Word document: headings, lists with their numbers, tables, text boxes behind the paragraph that they are
// anchored in, footnotes and endnotes behind the paragraph that refers to them. Of tracked changes it takes what was
// inserted and leaves what was deleted; hidden text, comments, headers and footers are left out. A document that cannot be
// read is a *flow.Error.
func Word(ctx context.Context, content []byte, w flow.Writer) (title string, warnings []string, err error) {
	a, err := archive.Open(content)
	if err != nil {
		return "", nil, err
	}
	main, err := mainPart(a, "word/document.xml")
	if err != nil {
		return "", nil, err
	}
	rel, err := a.Relations(main)
	if err != nil {
		return "", nil, err
	}
	d := &word{ctx: ctx, notes: map[string]*flow.Recorder{}, numbers: map[string]int{}, out: w, w: w}
	if d.styles, err = readStyles(a, rel.ByKind["styles"]); err != nil {
		return "", nil, err
	}
	if d.numbering, err = readNumbering(a, rel.ByKind["numbering"]); err != nil {
		return "", nil, err
	}
	for _, kind := range []string{"footnotes", "endnotes"} {
		if part := rel.ByKind[kind]; part != "" && a.Has(part) {
			if err := d.readNotes(a, part, kind); err != nil {
				if ctx.Err() != nil {
					return "", nil, err
				}
				warnings = append(warnings, "The "+kind+" are damaged and were left out.")
			}
		}
	}
	if err := a.Walk(main, d.token); err != nil {
		return "", nil, err
	}
	d.flush()
	if title = coreTitle(a); title == "" {
		title = d.title
	}
	return title, warnings, nil
}

// mainPart is the name of the part that the document begins with.
func mainPart(a *archive.Archive, usual string) (string, error) {
	rel, err := a.Relations("")
	if err != nil {
		return "", err
	}
	if part := rel.ByKind["officeDocument"]; part != "" && a.Has(part) {
		return part, nil
	}
	return usual, nil
}

// coreTitle is the title in the properties of a document.
func coreTitle(a *archive.Archive) string {
	const part = "docProps/core.xml"
	if !a.Has(part) {
		return ""
	}
	title, in := "", false
	err := a.Walk(part, func(t xml.Token) error {
		switch t := t.(type) {
		case xml.StartElement:
			in = t.Name.Local == "title"
		case xml.EndElement:
			in = false
		case xml.CharData:
			if in && len(title) < 1000 {
				title += string(t)
			}
		}
		return nil
	})
	if err != nil {
		return "" // the text is what counts
	}
	return strings.TrimSpace(title)
}

// word reads the body of a Word document.
type word struct {
	ctx       context.Context
	styles    map[string]style
	numbering *numbering
	notes     map[string]*flow.Recorder // by kind and id
	out       flow.Writer               // of the document
	w         flow.Writer               // what is written to now: the document, a text box or a note
	title     string

	paragraphs []paragraph // the one in hand and those around it
	boxes      []flow.Writer
	behind     []*flow.Recorder // what follows when the outermost paragraph, or table, ends
	tables     int
	skip       int // elements around the place whose content is left out
	inText     bool
	steps      int
	first      func()         // writes what the next paragraph begins with: the sign of a note
	numbers    map[string]int // of notes, by kind and id, in the order of the text
}

// paragraph is one whose properties are being read, or whose text is.
type paragraph struct {
	style  string
	level  int // as the paragraph itself says; -1 if it does not
	numID  string
	depth  int
	begun  bool
	hidden bool // the run in hand
}

// left out with all that is in them.
var leftOut = map[string]bool{
	"del": true, "moveFrom": true, "Fallback": true, "instrText": true, "delText": true, "delInstrText": true, "pPrChange": true,
	"rPrChange": true, "tblPrChange": true, "trPrChange": true, "tcPrChange": true, "sectPr": true, "tblPr": true, "tblGrid": true,
	"numberingChange": true, "binData": true, "annotation": true, "rubyPr": true, "rt": true,
}

func (d *word) token(t xml.Token) error {
	if d.steps++; d.steps%1024 == 0 && d.ctx.Err() != nil {
		return d.ctx.Err()
	}
	switch t := t.(type) {
	case xml.StartElement:
		if d.skip > 0 || leftOut[t.Name.Local] {
			d.skip++
			return nil
		}
		d.start(t)
	case xml.EndElement:
		if d.skip > 0 {
			d.skip--
			return nil
		}
		d.end(t.Name.Local)
	case xml.CharData:
		if d.skip == 0 && d.inText {
			d.text(string(t))
		}
	}
	return nil
}

func (d *word) start(e xml.StartElement) {
	p := d.paragraph()
	switch e.Name.Local {
	case "p":
		d.paragraphs = append(d.paragraphs, paragraph{level: -1})
	case "pStyle":
		p.style = archive.Attr(e, "val")
	case "outlineLvl":
		p.level = outline(e, -1)
	case "numId":
		p.numID = archive.Attr(e, "val")
	case "ilvl":
		p.depth = number(archive.Attr(e, "val"))
	case "r":
		p.hidden = false
	case "vanish":
		p.hidden = on(e)
	case "t":
		d.inText = true
	case "tab", "ptab":
		if p.begun {
			d.w.Text(" ")
		}
	case "br", "cr":
		if p.begun && !p.hidden {
			d.w.Break()
		}
	case "noBreakHyphen":
		d.text("-")
	case "footnoteReference", "endnoteReference":
		d.refer(strings.TrimSuffix(e.Name.Local, "Reference")+"s", archive.Attr(e, "id"))
	case "txbxContent":
		d.boxes = append(d.boxes, d.w)
		box := flow.NewRecorder(d.out)
		d.behind = append(d.behind, box)
		d.w = box
	case "tbl":
		d.tables++
		d.w.Table()
	case "tr":
		d.w.Row()
	case "tc":
		d.w.Cell()
	}
}

// paragraph is the one in hand; a spare one outside of all.
func (d *word) paragraph() *paragraph {
	if n := len(d.paragraphs); n > 0 {
		return &d.paragraphs[n-1]
	}
	return &paragraph{}
}

func (d *word) end(name string) {
	switch name {
	case "t":
		d.inText = false
	case "p":
		if n := len(d.paragraphs); n > 0 {
			d.paragraphs = d.paragraphs[:n-1]
		}
		d.flush()
	case "tbl":
		if d.tables > 0 {
			d.tables--
			d.w.EndTable()
		}
		d.flush()
	case "txbxContent":
		if n := len(d.boxes); n > 0 {
			d.w, d.boxes = d.boxes[n-1], d.boxes[:n-1]
		}
	}
}

// flush writes text boxes and notes, once nothing is open that they would tear apart.
func (d *word) flush() {
	if len(d.paragraphs) > 0 || d.tables > 0 || len(d.boxes) > 0 {
		return
	}
	for len(d.behind) > 0 {
		behind := d.behind
		d.behind = nil
		for _, r := range behind {
			r.Replay(d.w)
		}
	}
}

// text writes text of the paragraph in hand, which begins with it.
func (d *word) text(s string) {
	p := d.paragraph()
	if p.hidden || s == "" {
		return
	}
	if !p.begun {
		if strings.TrimSpace(s) == "" {
			return
		}
		p.begun = true
		d.begin(p)
		if d.first != nil {
			d.first()
		}
		d.first = nil
	}
	if d.styles[p.style].title && len(d.title) < 1000 {
		d.title += s
	}
	d.w.Text(s)
}

func (d *word) begin(p *paragraph) {
	s := resolved(d.styles, p.style)
	level := p.level
	if level < 0 {
		level = s.level
	}
	if level > 0 {
		d.w.Heading(level)
		return
	}
	if p.numID == "" {
		p.numID, p.depth = s.numID, max(p.depth, s.ordinal)
	}
	if m := d.numbering.marker(p.numID, p.depth); m != "" {
		d.w.Item(p.depth, m)
		return
	}
	d.w.Paragraph()
}

// refer writes the sign of a note, and keeps the note for behind the paragraph.
func (d *word) refer(kind, id string) {
	note := d.notes[kind+id]
	if note == nil || note.Empty() {
		return
	}
	if d.numbers[kind+id] == 0 {
		d.numbers[kind+id] = len(d.numbers) + 1
	}
	d.text(d.sign(kind + id))
	d.behind = append(d.behind, note)
}

// sign is that of a note: footnotes and endnotes are counted together, because both stand behind their paragraph.
func (d *word) sign(note string) string { return fmt.Sprintf("[%d]", d.numbers[note]) }

// readNotes reads the footnotes or endnotes.
func (d *word) readNotes(a *archive.Archive, part, kind string) error {
	n := &word{ctx: d.ctx, styles: map[string]style{}, numbering: d.numbering, out: d.out, w: d.out}
	element := strings.TrimSuffix(kind, "s")
	return a.Walk(part, func(t xml.Token) error {
		switch e := t.(type) {
		case xml.StartElement:
			if e.Name.Local == element {
				id := archive.Attr(e, "id")
				note := flow.NewRecorder(d.out)
				n.w, n.out = note, note
				if archive.Attr(e, "type") == "" { // others are the lines above notes
					d.notes[kind+id] = note
				}
				n.first = func() { note.Later(func() string { return d.sign(kind+id) + " " }) }
			}
		}
		return n.token(t)
	})
}
