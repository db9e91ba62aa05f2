package parse

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/archive"
	"github.com/waymarkhq/waymark/rag/parse/flow"
)

// book is what the package file of an EPUB book says.
type book struct {
	title    string
	chapters []string // files in the order of reading
}

// epub reads an EPUB book: its chapters in the order of reading, without its navigation. A chapter that is damaged is left out
// with a warning.
func (p *Parser) epub(ctx context.Context, s source) (Text, error) {
	a, err := archive.Open(s.content)
	if err != nil {
		return Text{}, err
	}
	b, err := readBook(a)
	if err != nil {
		return Text{}, err
	}
	if locked(a) {
		return Text{}, reject(rag.ReasonEncrypted, "the book is protected; its chapters are encrypted")
	}
	return p.flowText(ctx, func(ctx context.Context, w *flowWriter) (string, []string, error) {
		var warnings []string
		failed := 0
		for i, name := range b.chapters {
			if w.Full() {
				break
			}
			if err := p.chapter(ctx, a, name, w); err != nil {
				if fatal(ctx, err) || flow.ReasonOf(err) == rag.ReasonArchiveBomb {
					return "", nil, err
				}
				failed++
				warnings = append(warnings, fmt.Sprintf("Chapter %d (%s) was left out: %v.", i+1, path.Base(name), err))
			}
		}
		if failed > 0 && failed == len(b.chapters) {
			return "", nil, reject(rag.ReasonBrokenFile, "none of the book's %d chapters can be read", failed)
		}
		return b.title, warnings, nil
	})
}

// chapter writes one chapter.
func (p *Parser) chapter(ctx context.Context, a *archive.Archive, name string, w *flowWriter) error {
	content, err := a.Bytes(name)
	if err != nil {
		return err
	}
	d, ok := decode(content, "", true)
	if !ok {
		return reject(rag.ReasonBrokenFile, "it is not text")
	}
	text, err := p.html(ctx, trimMark(d.text))
	if err != nil {
		return err
	}
	w.insert(text, 0)
	return nil
}

// readBook reads which files a book is made of.
func readBook(a *archive.Archive) (book, error) {
	opf := ""
	err := a.Walk("META-INF/container.xml", func(t xml.Token) error {
		if e, ok := t.(xml.StartElement); ok && e.Name.Local == "rootfile" && opf == "" {
			opf = archive.Attr(e, "full-path")
		}
		return nil
	})
	if err != nil {
		return book{}, err
	}
	var b book
	files, navigation := map[string]string{}, map[string]bool{}
	element := ""
	err = a.Walk(opf, func(t xml.Token) error {
		switch t := t.(type) {
		case xml.StartElement:
			element = t.Name.Local
			switch element {
			case "item":
				if name, err := url.PathUnescape(archive.Attr(t, "href")); err == nil {
					files[archive.Attr(t, "id")] = path.Join(path.Dir(opf), name)
				}
				navigation[archive.Attr(t, "id")] = strings.Contains(" "+archive.Attr(t, "properties")+" ", " nav ")
			case "itemref":
				id := archive.Attr(t, "idref")
				if files[id] != "" && !navigation[id] && archive.Attr(t, "linear") != "no" {
					b.chapters = append(b.chapters, files[id])
				}
			}
		case xml.EndElement:
			element = ""
		case xml.CharData:
			if element == "title" && len(b.title) < 1000 {
				b.title += string(t)
			}
		}
		return nil
	})
	return b, err
}

// locked reports whether chapters are encrypted; fonts may be, which does no harm.
func locked(a *archive.Archive) bool {
	const part = "META-INF/encryption.xml"
	if !a.Has(part) {
		return false
	}
	found := false
	err := a.Walk(part, func(t xml.Token) error {
		if e, ok := t.(xml.StartElement); ok && e.Name.Local == "CipherReference" {
			switch strings.ToLower(path.Ext(archive.Attr(e, "URI"))) {
			case ".xhtml", ".html", ".htm", ".xml":
				found = true
			}
		}
		return nil
	})
	return found && err == nil
}
