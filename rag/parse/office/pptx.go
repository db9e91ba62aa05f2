package office

import (
	"context"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/archive"
	"github.com/waymarkhq/waymark/rag/parse/flow"
)

// Slides reads a PowerPoint presentation: each slide is a page, its title a heading; then its texts, lists and tables, and the
// speaker's notes. A slide that is damaged is left out with a warning. A document that cannot be read is a *flow.Error.
func Slides(ctx context.Context, content []byte, w flow.Writer) (title string, warnings []string, err error) {
	a, err := archive.Open(content)
	if err != nil {
		return "", nil, err
	}
	main, err := mainPart(a, "ppt/presentation.xml")
	if err != nil {
		return "", nil, err
	}
	slides, err := slideParts(a, main)
	if err != nil {
		return "", nil, err
	}
	failed := 0
	for i, part := range slides {
		if w.Full() {
			break
		}
		w.Page(i + 1)
		err := readSlide(ctx, a, part, w)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return "", nil, ctx.Err()
		case !flow.IsReject(err) || len(slides) == 1 || isBomb(err):
			return "", nil, err
		default:
			failed++
			warnings = append(warnings, fmt.Sprintf("Slide %d is damaged and was left out.", i+1))
		}
	}
	if failed > 0 && failed == len(slides) {
		return "", nil, flow.Reject(rag.ReasonBrokenFile, "none of the %d slides can be read", len(slides))
	}
	return coreTitle(a), warnings, nil
}

func isBomb(err error) bool { return flow.ReasonOf(err) == rag.ReasonArchiveBomb }

// slideParts are the names of the slides in their order.
func slideParts(a *archive.Archive, main string) ([]string, error) {
	rel, err := a.Relations(main)
	if err != nil {
		return nil, err
	}
	var parts []string
	err = a.Walk(main, func(t xml.Token) error {
		if e, ok := t.(xml.StartElement); ok && e.Name.Local == "sldId" {
			for _, attr := range e.Attr {
				if attr.Name.Local == "id" && rel.ByID[attr.Value] != "" {
					parts = append(parts, rel.ByID[attr.Value])
				}
			}
		}
		return nil
	})
	return parts, err
}

// readSlide writes a slide: its title first, wherever it stands in the file, and its notes last.
func readSlide(ctx context.Context, a *archive.Archive, part string, w flow.Writer) error {
	s := &slide{ctx: ctx, title: flow.NewRecorder(w), rest: flow.NewRecorder(w)}
	if err := a.Walk(part, s.token); err != nil {
		return err
	}
	s.title.Replay(w)
	s.rest.Replay(w)
	rel, err := a.Relations(part)
	if err != nil {
		return err
	}
	notes := rel.ByKind["notesSlide"]
	if notes == "" || !a.Has(notes) {
		return nil
	}
	n := &slide{ctx: ctx, title: flow.NewRecorder(w), rest: flow.NewRecorder(w), notes: true}
	if err := a.Walk(notes, n.token); err != nil {
		return err
	}
	n.rest.Replay(w)
	return nil
}

// slide reads the shapes of a slide, or of its notes.
type slide struct {
	ctx         context.Context
	title, rest *flow.Recorder
	notes       bool

	kind   string // of the placeholder that the shape fills; "-" if it fills none
	depth  int    // of the paragraph in its list
	bullet string // its marker; "" if it has none
	begun  bool   // the paragraph has text
	inText bool
	table  int
	skip   int
	number int // of an item
	steps  int
}

func (s *slide) token(t xml.Token) error {
	if s.steps++; s.steps%1024 == 0 && s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	switch t := t.(type) {
	case xml.StartElement:
		if s.skip > 0 || t.Name.Local == "Fallback" {
			s.skip++
			return nil
		}
		s.start(t)
	case xml.EndElement:
		if s.skip > 0 {
			s.skip--
			return nil
		}
		switch t.Name.Local {
		case "t":
			s.inText = false
		case "tbl":
			if s.table > 0 {
				s.table--
				s.rest.EndTable()
			}
		case "sp":
			s.kind = "-"
		}
	case xml.CharData:
		if s.skip == 0 && s.inText {
			s.text(string(t))
		}
	}
	return nil
}

func (s *slide) start(e xml.StartElement) {
	switch e.Name.Local {
	case "sp":
		s.kind, s.number = "-", 0
	case "ph":
		if s.kind = archive.Attr(e, "type"); s.kind == "" {
			s.kind = "obj"
		}
	case "p":
		s.begun, s.depth, s.bullet = false, 0, ""
		if s.kind == "body" || s.kind == "obj" {
			s.bullet = "-"
		}
	case "pPr":
		s.depth = number(archive.Attr(e, "lvl"))
	case "buNone":
		s.bullet = ""
	case "buChar":
		s.bullet = "-"
	case "buAutoNum":
		s.number++
		s.bullet = fmt.Sprintf("%d.", s.number)
	case "t":
		s.inText = true
	case "br":
		if s.begun {
			s.out().Break()
		}
	case "tbl":
		s.table++
		s.rest.Table()
	case "tr":
		s.rest.Row()
	case "tc":
		s.rest.Cell()
		s.bullet = ""
	}
}

func (s *slide) isTitle() bool { return s.kind == "title" || s.kind == "ctrTitle" }

func (s *slide) out() flow.Writer {
	if s.isTitle() {
		return s.title
	}
	return s.rest
}

func (s *slide) text(text string) {
	switch {
	case s.kind == "sldNum" || s.kind == "dt" || s.kind == "ftr" || s.kind == "hdr":
		return // repeated on each slide
	case s.notes && s.kind != "body":
		return
	}
	if !s.begun {
		if strings.TrimSpace(text) == "" {
			return
		}
		s.begun = true
		switch {
		case s.isTitle() && s.title.Empty():
			s.title.Heading(1)
		case s.isTitle():
			s.title.Text(" ")
		case s.bullet != "" && !s.notes && s.table == 0:
			s.rest.Item(s.depth, s.bullet)
		default:
			s.rest.Paragraph()
		}
	}
	s.out().Text(text)
}
