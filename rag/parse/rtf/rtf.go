package rtf

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/flow"
)

// maxDepth bounds the nesting of groups.
const maxDepth = 1000

// Read reads a document: its paragraphs, headings by their outline level, lists as lines with their markers, tables, and
// footnotes in brackets. Hidden and deleted text, pictures, headers, footers and fields' codes are left out. A document
// that cannot be read is a *flow.Error.
func Read(ctx context.Context, content []byte, w flow.Writer) (title string, warnings []string, err error) {
	r := &reader{scan: scanner{in: content}, w: w, fonts: map[int]string{}, page: "windows-1252", state: state{skipU: 1, font: -1}, level: -1}
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return "", nil, ctx.Err()
		}
		if w.Full() {
			break
		}
		t := r.scan.next()
		if t.kind == tokenEnd {
			if len(r.stack) > 0 {
				warnings = append(warnings, "The document breaks off; what was found was taken.")
			}
			break
		}
		if err := r.token(t); err != nil {
			return "", nil, err
		}
	}
	r.decode()
	r.flush()
	r.endTable()
	return r.title.String(), warnings, nil
}

// state is what a group inherits and gives back.
type state struct {
	skip   bool // the group holds nothing to read
	dest   string
	hidden bool
	font   int
	skipU  int // bytes that follow a \u for readers that do not know it
}

// reader reads a document token by token.
type reader struct {
	scan  scanner
	w     flow.Writer
	stack []state
	state
	fonts    map[int]string // charsets by number
	page     string         // the charset of the document
	title    strings.Builder
	pending  []byte // bytes not decoded yet
	high     rune   // a half of a character beyond 16 bits
	ignore   int    // bytes that only stand in for a \u
	begun    bool   // the paragraph has text
	marker   strings.Builder
	level    int  // of a heading, from 0; -1 for text
	inTable  bool // the paragraph stands in a cell
	table    bool // a table is open
	cell     bool // the cell in hand has begun
	row      bool
	group    bool // the token before opened a group
	optional bool // it was followed by \*
}

// skipped are the groups that hold nothing a reader reads.
var skipped = map[string]bool{
	"colortbl": true, "stylesheet": true, "listtable": true, "listoverridetable": true, "rsidtbl": true, "generator": true, "pict": true,
	"object": true, "objdata": true, "header": true, "headerl": true, "headerr": true, "headerf": true, "footer": true, "footerl": true,
	"footerr": true, "footerf": true, "fldinst": true, "themedata": true, "colorschememapping": true, "datastore": true, "latentstyles": true,
	"xmlnstbl": true, "filetbl": true, "revtbl": true, "bkmkstart": true, "bkmkend": true, "annotation": true, "atnid": true, "atnauthor": true,
	"nonshppict": true, "panose": true, "falt": true, "pgdsctbl": true, "pntxta": true, "pntxtb": true, "mmathPr": true,
	"sp": true, "sn": true, "sv": true, "tc": true, "xe": true, "ftnsep": true, "ftnsepc": true, "aftnsep": true, "aftnsepc": true, "fontemb": true,
	"listpicture": true, "wgrffmtfilter": true, "docvar": true, "template": true, "nextfile": true, "passwordhash": true, "factoidname": true,
}

func (r *reader) token(t token) error {
	opened, optional := r.group, r.optional
	r.group, r.optional = false, false
	if t.kind != tokenByte {
		r.decode()
		r.ignore = 0
	}
	switch t.kind {
	case tokenOpen:
		if len(r.stack) == maxDepth {
			return flow.Reject(rag.ReasonTooLarge, "the document is nested more than %d deep", maxDepth)
		}
		r.stack = append(r.stack, r.state)
		r.group = true
	case tokenClose:
		r.closeGroup()
	case tokenSign:
		if t.b == '*' && opened {
			r.group, r.optional = true, true
			return nil
		}
		r.sign(t.b)
	case tokenByte:
		if r.ignore > 0 {
			r.ignore--
			return nil
		}
		if r.readable() || r.dest == "title" {
			r.pending = append(r.pending, t.b)
		}
	case tokenWord:
		if opened && r.destination(t.word, optional) {
			return nil
		}
		r.word(t)
	}
	return nil
}

func (r *reader) readable() bool {
	return !r.skip && !r.hidden && r.dest != "title" && r.dest != "fonttbl" && r.dest != "info"
}

// destination begins a group that is named.
func (r *reader) destination(word string, optional bool) bool {
	switch word {
	case "fonttbl", "info", "footnote", "listtext", "pntext":
		r.dest = word
		if word == "footnote" {
			r.emit(" [")
		}
		return true
	case "title":
		if r.dest == "info" {
			r.dest = word
		}
		return true
	case "shptxt", "shp", "shpinst", "fldrslt", "shprslt":
		r.skip = r.skip || word == "shprslt" // the shape again, for old programs
		return true
	}
	if skipped[word] || optional {
		r.skip = true
		return true
	}
	return false
}

func (r *reader) closeGroup() {
	if r.dest == "footnote" && len(r.stack) > 0 && r.stack[len(r.stack)-1].dest != "footnote" {
		r.emit("]")
	}
	if n := len(r.stack); n > 0 {
		r.state, r.stack = r.stack[n-1], r.stack[:n-1]
	}
}

func (r *reader) sign(b byte) {
	switch b {
	case '\\', '{', '}':
		r.emit(string(rune(b)))
	case '~':
		r.emit(" ")
	case '_':
		r.emit("-")
	}
}

// signs are control words that stand for characters.
var signs = map[string]string{
	"tab": " ", "emdash": "—", "endash": "–", "bullet": "•", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”",
	"emspace": " ", "enspace": " ", "qmspace": " ",
}

func (r *reader) word(t token) {
	if s, ok := signs[t.word]; ok {
		r.emit(s)
		return
	}
	switch t.word {
	case "u":
		r.unicode(t.value)
	case "uc":
		r.skipU = max(0, min(t.value, 16))
	case "bin":
		r.scan.skip(t.value)
	case "ansicpg":
		r.page = codepage(t.value)
	case "mac":
		r.page = "macintosh"
	case "f":
		r.font = t.value
	case "fcharset":
		if r.dest == "fonttbl" {
			r.fonts[r.font] = fontCharset(t.value)
		}
	case "v", "deleted":
		r.hidden = !t.hasValue || t.value != 0
	case "plain":
		r.hidden = false
	case "pard":
		r.level = -1
		r.inTable = false
	case "outlinelevel":
		r.level = t.value
	case "intbl":
		r.inTable = true
	case "line", "softline":
		if r.readable() && r.begun {
			r.w.Break()
		}
	case "par", "sect", "page":
		r.paragraphEnds()
	case "cell", "nestcell":
		r.cellEnds()
	case "row", "nestrow":
		if r.readable() {
			r.cell, r.row = false, false
		}
	}
}

// unicode writes a character, which comes as 16 bits with a sign.
func (r *reader) unicode(value int) {
	r.ignore = r.skipU
	c := rune(uint16(value))
	switch {
	case utf16.IsSurrogate(c) && r.high == 0:
		r.high = c
		return
	case r.high != 0:
		c = utf16.DecodeRune(r.high, c)
		r.high = 0
	}
	if utf8.ValidRune(c) {
		r.emit(string(c))
	}
}

// decode writes the bytes in hand.
func (r *reader) decode() {
	if len(r.pending) == 0 {
		return
	}
	b := r.pending
	r.pending = r.pending[:0]
	name := r.fonts[r.font]
	if name == "" {
		name = r.page
	}
	e, _ := charset.Lookup(name)
	if e == nil {
		e = encoding.Replacement
	}
	if s, err := e.NewDecoder().Bytes(b); err == nil {
		r.emit(string(s))
	}
}

// emit writes text of the paragraph in hand, which begins with it.
func (r *reader) emit(s string) {
	switch {
	case r.dest == "title":
		if r.title.Len() < 1000 {
			r.title.WriteString(s)
		}
		return
	case !r.readable():
		return
	case r.dest == "listtext" || r.dest == "pntext":
		if r.marker.Len() < 20 {
			r.marker.WriteString(s)
		}
		return
	}
	if !r.begun {
		if strings.TrimSpace(s) == "" {
			return
		}
		r.begun = true
		r.begin()
	}
	r.w.Text(s)
}

// begin begins a block for the paragraph in hand.
func (r *reader) begin() {
	marker := strings.TrimSpace(r.marker.String())
	r.marker.Reset()
	if r.inTable {
		r.beginCell()
		return
	}
	r.endTable()
	switch {
	case r.level >= 0 && r.level < 9:
		r.w.Heading(r.level + 1)
	case marker != "":
		if r, n := utf8.DecodeRuneInString(marker); n == len(marker) && (strings.ContainsRune("•·▪◦-–o", r) || unicode.Is(unicode.Co, r)) {
			marker = "-"
		}
		r.w.Item(0, marker)
	default:
		r.w.Paragraph()
	}
}

func (r *reader) beginCell() {
	if !r.table {
		r.table = true
		r.w.Table()
	}
	if !r.row {
		r.row = true
		r.w.Row()
	}
	if !r.cell {
		r.cell = true
		r.w.Cell()
		return
	}
	r.w.Paragraph()
}

func (r *reader) endTable() {
	if r.table {
		r.w.EndTable()
	}
	r.table, r.row, r.cell = false, false, false
}

func (r *reader) paragraphEnds() {
	if r.readable() && r.dest != "footnote" {
		r.flush()
	} else {
		r.emit(" ")
	}
}

// cellEnds ends a cell; one without text counts too.
func (r *reader) cellEnds() {
	if !r.readable() {
		return
	}
	if !r.begun {
		r.beginCell()
	}
	r.flush()
	r.cell = false
}

func (r *reader) flush() {
	r.begun = false
	r.marker.Reset()
}
