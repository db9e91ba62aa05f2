package office

import (
	"encoding/xml"
	"strconv"
	"strings"

	"github.com/waymarkhq/waymark/rag/parse/archive"
)

// style is what a style of paragraphs says about structure.
type style struct {
	based   string
	level   int // of a heading, from 1; 0 if it is none
	title   bool
	numID   string
	hidden  bool
	ordinal int // depth of its list
}

// readStyles reads the styles of a Word document by id.
func readStyles(a *archive.Archive, part string) (map[string]style, error) {
	styles := map[string]style{}
	if part == "" || !a.Has(part) {
		return styles, nil
	}
	id, s := "", style{}
	err := a.Walk(part, func(t xml.Token) error {
		switch e := t.(type) {
		case xml.StartElement:
			switch e.Name.Local {
			case "style":
				id, s = archive.Attr(e, "styleId"), style{}
			case "basedOn":
				s.based = archive.Attr(e, "val")
			case "name":
				s.level, s.title = namedLevel(archive.Attr(e, "val"), s.level)
			case "outlineLvl":
				s.level = outline(e, s.level)
			case "numId":
				s.numID = archive.Attr(e, "val")
			case "ilvl":
				s.ordinal = number(archive.Attr(e, "val"))
			case "vanish":
				s.hidden = on(e)
			}
		case xml.EndElement:
			if e.Name.Local == "style" && id != "" {
				styles[id] = s
				id = ""
			}
		}
		return nil
	})
	return styles, err
}

// resolved is a style with what it has from those that it is based on.
func resolved(styles map[string]style, id string) style {
	s := styles[id]
	for depth, based := 0, s.based; based != "" && depth < 20; depth++ {
		b := styles[based]
		if s.level == 0 {
			s.level = b.level
		}
		if s.numID == "" {
			s.numID, s.ordinal = b.numID, b.ordinal
		}
		based = b.based
	}
	return s
}

// namedLevel knows the built-in styles by their names, which are English in every language of Word.
func namedLevel(name string, level int) (int, bool) {
	name = strings.ToLower(name)
	if name == "title" {
		return 1, true
	}
	if n, ok := strings.CutPrefix(name, "heading "); ok {
		if n, err := strconv.Atoi(n); err == nil && n >= 1 && n <= 9 {
			return n, false
		}
	}
	return level, false
}

// outline is the level of an outlineLvl element: 9 stands for text.
func outline(e xml.StartElement, level int) int {
	n, err := strconv.Atoi(archive.Attr(e, "val"))
	if err != nil || n < 0 || n > 9 {
		return level
	}
	if n == 9 {
		return 0
	}
	return n + 1
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// on is the value of an element that is a switch.
func on(e xml.StartElement) bool {
	switch archive.Attr(e, "val") {
	case "0", "false", "off":
		return false
	}
	return true
}

// numbering are the lists of a Word document.
type numbering struct {
	abstract map[string]string         // by numId
	formats  map[string]map[int]format // by abstract id and depth
	counts   map[string]map[int]int    // numbers given, by abstract id and depth
}

type format struct {
	kind  string
	start int
}

func readNumbering(a *archive.Archive, part string) (*numbering, error) {
	n := &numbering{map[string]string{}, map[string]map[int]format{}, map[string]map[int]int{}}
	if part == "" || !a.Has(part) {
		return n, nil
	}
	abstract, num, depth := "", "", 0
	return n, a.Walk(part, func(t xml.Token) error {
		switch e := t.(type) {
		case xml.StartElement:
			value := archive.Attr(e, "val")
			switch e.Name.Local {
			case "abstractNum":
				abstract = archive.Attr(e, "abstractNumId")
				n.formats[abstract] = map[int]format{}
			case "lvl":
				depth = number(archive.Attr(e, "ilvl"))
				if abstract != "" {
					n.formats[abstract][depth] = format{start: 1}
				}
			case "numFmt", "start":
				if abstract != "" {
					f := n.formats[abstract][depth]
					if e.Name.Local == "start" {
						f.start = number(value)
					} else {
						f.kind = value
					}
					n.formats[abstract][depth] = f
				}
			case "num":
				num = archive.Attr(e, "numId")
			case "abstractNumId":
				n.abstract[num] = value
			}
		case xml.EndElement:
			if e.Name.Local == "abstractNum" {
				abstract = ""
			}
		}
		return nil
	})
}

// marker is the next marker of a list at a depth; "" if the list has none.
func (n *numbering) marker(numID string, depth int) string {
	id, ok := n.abstract[numID]
	if !ok || numID == "0" {
		return ""
	}
	f := n.formats[id][depth]
	switch f.kind {
	case "bullet":
		return "-"
	case "none":
		return ""
	}
	counts := n.counts[id]
	if counts == nil {
		counts = map[int]int{}
		n.counts[id] = counts
	}
	if _, begun := counts[depth]; !begun {
		counts[depth] = f.start
	} else {
		counts[depth]++
	}
	for d := range counts {
		if d > depth {
			delete(counts, d)
		}
	}
	return ordinal(f.kind, counts[depth]) + "."
}

// ordinal writes a number of a list as its format wants it.
func ordinal(kind string, n int) string {
	if n >= 1 && n <= 26 {
		switch kind {
		case "lowerLetter":
			return string(rune('a' + n - 1))
		case "upperLetter":
			return string(rune('A' + n - 1))
		}
	}
	if n >= 1 && n < 40 {
		switch kind {
		case "lowerRoman":
			return roman(n)
		case "upperRoman":
			return strings.ToUpper(roman(n))
		}
	}
	return strconv.Itoa(n)
}

func roman(n int) string {
	ones := [...]string{"", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix"}
	return strings.Repeat("x", n/10) + ones[n%10]
}
