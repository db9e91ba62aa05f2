package parse

import (
	"encoding/json"
	"mime"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"

	"github.com/waymarkhq/waymark/rag"
)

// detected is a document whose type is known, decoded.
type detected struct {
	decoded
	kind string // one of the Type constants; with an error the media type of what is not read, as far as it is known
}

// detect tells the type of a document and decodes it, if it is text.
func detect(in Input) (detected, error) {
	declared, charset := declaredType(in.DeclaredType)
	isText := isTextType(declared)
	asSaid := declared == TypePlain && utf8.Valid(in.Content) // a text may even begin as a PDF document does
	if !asSaid {
		kind, err := binaryKind(in.Content, declared, in.Name)
		if err != nil {
			return detected{kind: kind}, err
		}
		if kind != "" {
			return detected{kind: kind, decoded: decoded{warnings: contradictions(kind, declared, in.Name)}}, nil
		}
	}
	d, ok := decode(in.Content, charset, isText)
	if !ok || !asSaid && foreign(in.Content, d.text) {
		kind := mediaType(mimetype.Detect(in.Content).String())
		return detected{kind: kind}, errUnsupported(kind)
	}
	kind := textKind(trimMark(d.text), declared, in.Name)
	d.warnings = append(contradictions(kind, declared, in.Name), d.warnings...)
	return detected{decoded: d, kind: kind}, nil
}

// isTextType reports whether a sender who declares this means text.
func isTextType(declared string) bool {
	return strings.HasPrefix(declared, "text/") || readable[declared] != ""
}

// mediaType is a content type without parameters.
func mediaType(s string) string {
	base, _, _ := strings.Cut(s, ";")
	return strings.TrimSpace(base)
}

// readable maps declared types to the types that a Parser knows.
var readable = map[string]string{
	"text/plain":             TypePlain,
	"text/markdown":          TypeMarkdown,
	"text/x-markdown":        TypeMarkdown,
	"text/html":              TypeHTML,
	"application/xhtml+xml":  TypeHTML,
	"application/json":       TypeJSON,
	"text/json":              TypeJSON,
	"application/x-ndjson":   TypeJSONLines,
	"application/ndjson":     TypeJSONLines,
	"application/jsonl":      TypeJSONLines,
	"application/x-jsonl":    TypeJSONLines,
	"application/jsonlines":  TypeJSONLines,
	"application/x-json-seq": TypeJSONLines,
	"text/csv":               TypeCSV,
	"application/csv":        TypeCSV,
	TypeTSV:                  TypeTSV,
	"text/xml":               TypeXML,
	"application/xml":        TypeXML,
	TypeMail:                 TypeMail,
	"message/rfc2822":        TypeMail,
	"message/global":         TypeMail,
}

// extensions maps extensions of names to types.
var extensions = map[string]string{
	".txt": TypePlain, ".text": TypePlain, ".log": TypePlain,
	".md": TypeMarkdown, ".markdown": TypeMarkdown, ".mdown": TypeMarkdown, ".mkd": TypeMarkdown,
	".html": TypeHTML, ".htm": TypeHTML, ".xhtml": TypeHTML,
	".json": TypeJSON, ".geojson": TypeJSON, ".jsonld": TypeJSON,
	".jsonl": TypeJSONLines, ".ndjson": TypeJSONLines,
	".csv": TypeCSV, ".tsv": TypeTSV, ".tab": TypeTSV,
	".xml": TypeXML, ".eml": TypeMail,
}

// declaredType splits a content type; what says nothing about the content counts as not declared.
func declaredType(s string) (kind, charset string) {
	kind, params, err := mime.ParseMediaType(s)
	if err != nil && kind == "" {
		kind = strings.ToLower(strings.TrimSpace(strings.SplitN(s, ";", 2)[0]))
	}
	switch kind {
	case "application/octet-stream", "binary/octet-stream", "application/x-www-form-urlencoded", "*/*":
		kind = ""
	}
	if strings.HasSuffix(kind, "+json") {
		kind = TypeJSON
	}
	return kind, params["charset"]
}

// foreign reports whether content is of a format that is not text, though it decodes as text. Text without control
// characters is not judged by the two or three letters that many formats begin with.
func foreign(content []byte, text string) bool {
	m := mimetype.Detect(content)
	if m.Is("application/postscript") {
		return true
	}
	if m.Is("application/octet-stream") || isText(m) {
		return false
	}
	return strings.ContainsFunc(text[:min(len(text), 4096)], func(r rune) bool {
		return r < ' ' && !strings.ContainsRune("\t\n\v\f\r\x1b", r) || r == '\ufffd'
	})
}

func isText(m *mimetype.MIME) bool {
	for ; m != nil; m = m.Parent() {
		if m.Is("text/plain") {
			return true
		}
	}
	return false
}

// textKind tells the type of text.
func textKind(text, declared, name string) string {
	known := readable[declared]
	if known == TypePlain {
		return TypePlain
	}
	head := strings.TrimLeft(text, " \t\r\n")
	switch {
	case isHTML(head):
		return TypeHTML
	case known != TypeHTML && isXML(head):
		return TypeXML
	case known != TypeMarkdown && looksLikeJSON(head):
		if json.Valid([]byte(head)) {
			return TypeJSON
		}
		if isJSONLines(head) {
			return TypeJSONLines
		}
	}
	if known != "" {
		return known
	}
	if strings.HasSuffix(declared, "/xml") || strings.HasSuffix(declared, "+xml") {
		return TypeXML
	}
	if known = extensions[strings.ToLower(path.Ext(name))]; known != "" {
		return known
	}
	if isSource(declared, name) {
		return TypeSource
	}
	if mimetype.Detect([]byte(head)).Is("text/html") {
		return TypeHTML // it begins with some element of HTML
	}
	return TypePlain
}

// isHTML reports whether a text begins as only an HTML document does.
func isHTML(head string) bool {
	head = afterProlog(head)
	return hasPrefixFold(head, "<!doctype html") || hasPrefixFold(head, "<html")
}

func isXML(head string) bool {
	return strings.HasPrefix(head, "<?xml") || hasPrefixFold(head, "<!doctype ") || hasPrefixFold(head, "<svg")
}

// afterProlog skips an XML declaration and comments.
func afterProlog(head string) string {
	for {
		end := ""
		switch {
		case strings.HasPrefix(head, "<?xml"):
			end = "?>"
		case strings.HasPrefix(head, "<!--"):
			end = "-->"
		default:
			return head
		}
		_, rest, found := strings.Cut(head, end)
		if !found {
			return head
		}
		head = strings.TrimLeft(rest, " \t\r\n")
	}
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

func looksLikeJSON(head string) bool {
	return strings.HasPrefix(head, "{") || strings.HasPrefix(head, "[")
}

// isJSONLines reports whether the first lines, two at least, are JSON objects or arrays each.
func isJSONLines(text string) bool {
	n := 0
	for line := range strings.Lines(text) {
		line = strings.Trim(line, jsonSpace)
		if line == "" {
			continue
		}
		if !looksLikeJSON(line) || !json.Valid([]byte(line)) {
			return false
		}
		if n++; n == 3 {
			return true
		}
	}
	return n == 2
}

// names of common formats for people.
var names = map[string]string{
	"application/msword":                              "a Word document of the old kind",
	"application/vnd.ms-excel":                        "an Excel workbook of the old kind",
	"application/vnd.ms-powerpoint":                   "a PowerPoint presentation of the old kind",
	"application/vnd.oasis.opendocument.text":         "an OpenDocument text",
	"application/vnd.oasis.opendocument.spreadsheet":  "an OpenDocument spreadsheet",
	"application/vnd.oasis.opendocument.presentation": "an OpenDocument presentation",
	"application/zip":                                 "a ZIP archive",
	"application/gzip":                                "a gzip archive",
	"application/octet-stream":                        "binary data of no known type",
	"application/postscript":                          "a PostScript document",
}

func errUnsupported(kind string) error {
	base := mediaType(kind)
	name, ok := names[base]
	switch {
	case ok:
	case strings.HasPrefix(base, "image/"):
		name = "an image"
	case strings.HasPrefix(base, "audio/"):
		name = "audio"
	case strings.HasPrefix(base, "video/"):
		name = "a video"
	default:
		name = "of another type"
	}
	return reject(rag.ReasonUnsupportedType,
		"the document is %s (%s), which cannot be read; text, Markdown, HTML, PDF, DOCX, PPTX, XLSX, CSV, e-mail, EPUB, RTF, XML, JSON and source code can", name, base)
}

// trimMark removes the byte order mark that a text in UTF-8 may begin with.
func trimMark(text string) string { return strings.TrimPrefix(text, "\ufeff") }
