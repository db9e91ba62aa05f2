package parsetest

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"
)

// File is a file in an archive.
type File struct{ Name, Content string }

// Zip packs files in their order. It panics when it cannot, which no content causes.
func Zip(files ...File) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		method := zip.Deflate
		if f.Name == "mimetype" {
			method = zip.Store
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: f.Name, Method: method})
		if err == nil {
			_, err = w.Write([]byte(f.Content))
		}
		if err != nil {
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

const (
	packageRels = "http://schemas.openxmlformats.org/package/2006/relationships"
	officeRels  = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
	wordSpace   = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
	drawSpace   = "http://schemas.openxmlformats.org/drawingml/2006/main"
	showSpace   = "http://schemas.openxmlformats.org/presentationml/2006/main"
)

// Rels is a part with relationships: pairs of kind and target; their ids are rId1, rId2, …
func Rels(pairs ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0"?><Relationships xmlns="%s">`, packageRels)
	for i := 0; i+1 < len(pairs); i += 2 {
		fmt.Fprintf(&b, `<Relationship Id="rId%d" Type="%s%s" Target="%s"/>`, i/2+1, officeRels, pairs[i], pairs[i+1])
	}
	return b.String() + "</Relationships>"
}

// Word packs a Word document with a body; the main part is not the first file, as other programs than Word have it. Built-in
// are the styles Title, Heading1 to Heading3, and lists 1 (bullets) and 2 (numbers).
func Word(body string, more ...File) []byte {
	rels := []string{"styles", "styles.xml", "numbering", "numbering.xml"}
	for _, f := range more {
		switch f.Name {
		case "word/footnotes.xml":
			rels = append(rels, "footnotes", "footnotes.xml")
		case "word/endnotes.xml":
			rels = append(rels, "endnotes", "endnotes.xml")
		}
	}
	styles := `<w:style w:styleId="Title"><w:name w:val="Title"/></w:style>`
	for i := 1; i <= 3; i++ {
		styles += fmt.Sprintf(`<w:style w:styleId="Heading%d"><w:name w:val="heading %d"/></w:style>`, i, i)
	}
	styles += `<w:style w:styleId="Own"><w:name w:val="Überschrift"/><w:basedOn w:val="Heading2"/></w:style>`
	lists := `<w:abstractNum w:abstractNumId="7"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl><w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>` +
		`<w:abstractNum w:abstractNumId="8"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/></w:lvl><w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/></w:lvl></w:abstractNum>` +
		`<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="8"/></w:num>`
	wrap := func(element, content string) string {
		return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?><w:%s xmlns:w="%s" xmlns:mc="x" xmlns:wps="x">%s</w:%s>`, element, wordSpace, content, element)
	}
	files := append([]File{
		{"_rels/.rels", Rels("officeDocument", "word/document.xml")},
		{"word/_rels/document.xml.rels", Rels(rels...)},
		{"word/styles.xml", wrap("styles", styles)},
		{"word/numbering.xml", wrap("numbering", lists)},
	}, more...)
	return Zip(append(files, File{"word/document.xml", wrap("document", "<w:body>"+body+"</w:body>")}, File{"[Content_Types].xml", "<Types/>"})...)
}

// WordParagraph is a paragraph of a Word document: a style, "" for none, and a text.
func WordParagraph(style, text string) string {
	properties := ""
	if style != "" {
		properties = `<w:pPr><w:pStyle w:val="` + style + `"/></w:pPr>`
	}
	return "<w:p>" + properties + `<w:r><w:t xml:space="preserve">` + escape(text) + "</w:t></w:r></w:p>"
}

// WordItem is an item of list 1 or 2 at a depth.
func WordItem(list, depth int, text string) string {
	return fmt.Sprintf(`<w:p><w:pPr><w:numPr><w:ilvl w:val="%d"/><w:numId w:val="%d"/></w:numPr></w:pPr><w:r><w:t>%s</w:t></w:r></w:p>`, depth, list, escape(text))
}

// WordNotes is the part with footnotes or endnotes: element is "footnote" or "endnote", their ids are 1, 2, …
func WordNotes(element string, texts ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<w:%ss xmlns:w="%s"><w:%s w:type="separator" w:id="0"><w:p><w:r><w:t>line</w:t></w:r></w:p></w:%s>`, element, wordSpace, element, element)
	for i, t := range texts {
		fmt.Fprintf(&b, `<w:%s w:id="%d">%s</w:%s>`, element, i+1, WordParagraph("", t), element)
	}
	return b.String() + "</w:" + element + "s>"
}

// Slides packs a PowerPoint presentation: the XML of the shapes of each slide. The slides' files are not in their order.
func Slides(shapes []string, notes map[int]string) []byte {
	var ids, files = "", []File{{"_rels/.rels", Rels("officeDocument", "ppt/presentation.xml")}}
	var rels []string
	for i, s := range shapes {
		name := fmt.Sprintf("slides/slide%d.xml", len(shapes)-i)
		rels = append(rels, "slide", name)
		ids += fmt.Sprintf(`<p:sldId id="%d" r:id="rId%d"/>`, 256+i, i+1)
		files = append(files, File{"ppt/" + name, slidePart("sld", s)})
		if notes[i] != "" {
			files = append(files, File{fmt.Sprintf("ppt/slides/_rels/slide%d.xml.rels", len(shapes)-i), Rels("notesSlide", fmt.Sprintf("../notesSlides/n%d.xml", i))},
				File{fmt.Sprintf("ppt/notesSlides/n%d.xml", i), slidePart("notes", SlideShape("sldImg", "")+SlideShape("body", notes[i])+SlideShape("sldNum", "9"))})
		}
	}
	files = append(files, File{"ppt/_rels/presentation.xml.rels", Rels(rels...)},
		File{"ppt/presentation.xml", fmt.Sprintf(`<p:presentation xmlns:p="%s" xmlns:r="r"><p:sldIdLst>%s</p:sldIdLst></p:presentation>`, showSpace, ids)})
	return Zip(files...)
}

func slidePart(element, shapes string) string {
	return fmt.Sprintf(`<p:%s xmlns:p="%s" xmlns:a="%s"><p:cSld><p:spTree>%s</p:spTree></p:cSld></p:%s>`, element, showSpace, drawSpace, shapes, element)
}

// SlideShape is a shape with paragraphs of text; kind is that of its placeholder, "-" for a text box.
func SlideShape(kind string, paragraphs ...string) string {
	var b strings.Builder
	placeholder := fmt.Sprintf(`<p:ph type="%s"/>`, kind)
	switch kind {
	case "-":
		placeholder = ""
	case "":
		placeholder = `<p:ph idx="1"/>`
	}
	fmt.Fprintf(&b, `<p:sp><p:nvSpPr><p:nvPr>%s</p:nvPr></p:nvSpPr><p:txBody>`, placeholder)
	for _, p := range paragraphs {
		depth := len(p) - len(strings.TrimLeft(p, "\t"))
		fmt.Fprintf(&b, `<a:p><a:pPr lvl="%d"/><a:r><a:t>%s</a:t></a:r></a:p>`, depth, escape(strings.TrimLeft(p, "\t")))
	}
	return b.String() + "</p:txBody></p:sp>"
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
