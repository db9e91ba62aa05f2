package parse

import (
	"archive/zip"
	"bytes"
	"io"
	"path"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"github.com/waymarkhq/waymark/rag"
)

// pdfHead is how far into a file the mark of a PDF document may stand.
const pdfHead = 1024

// isPDF reports whether content is a PDF document.
func isPDF(content []byte) bool {
	i := bytes.Index(content[:min(len(content), pdfHead)], []byte("%PDF-"))
	return i == 0 || i > 0 && (binary(content) || len(bytes.TrimSpace(content[:i])) == 0 || bytes.HasPrefix(content, []byte("\xef\xbb\xbf%")))
}

// binaryKind tells the type of what is read as bytes, "" if it is to be read as text. With an error it is that of a file
// which is not read, "" if it is not known.
func binaryKind(content []byte, declared, name string) (string, error) {
	switch {
	case isPDF(content):
		return TypePDF, nil
	case bytes.HasPrefix(content, []byte(`{\rtf`)):
		return TypeRTF, nil
	case bytes.HasPrefix(content, []byte("PK\x03\x04")), bytes.HasPrefix(content, []byte("PK\x05\x06")):
		return zipKind(content, declared, name)
	case bytes.HasPrefix(content, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")):
		return compoundKind(content)
	case isMail(content, declared, name):
		return TypeMail, nil
	}
	return "", nil
}

// zipKind tells the type of a ZIP archive by what is in it: the order of its entries, and what was declared, say nothing.
func zipKind(content []byte, declared, name string) (string, error) {
	z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		ext := strings.ToLower(path.Ext(name))
		if zipTypes[declared] || zipExtensions[ext] {
			return "", reject(rag.ReasonBrokenFile, "the document is damaged: it is not a whole ZIP archive, as its format asks for")
		}
		return "application/zip", errUnsupported("application/zip")
	}
	for _, f := range z.File {
		switch {
		case strings.EqualFold(f.Name, "word/document.xml"), strings.EqualFold(f.Name, "word/document2.xml"):
			return TypeDOCX, nil
		case strings.EqualFold(f.Name, "ppt/presentation.xml"):
			return TypePPTX, nil
		case strings.EqualFold(f.Name, "xl/workbook.xml"):
			return TypeXLSX, nil
		case f.Name == "META-INF/container.xml":
			return TypeEPUB, nil
		}
	}
	for _, f := range z.File {
		if f.Name == "mimetype" && f.UncompressedSize64 < 100 {
			kind := mediaType(packedType(f))
			return kind, errUnsupported(kind)
		}
	}
	return "application/zip", errUnsupported("application/zip")
}

// packedType is what an archive says to be.
func packedType(f *zip.File) string {
	r, err := f.Open()
	if err != nil {
		return "application/zip"
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, 100))
	if err != nil {
		return "application/zip"
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(b), ""))
}

var (
	zipTypes      = map[string]bool{TypeDOCX: true, TypePPTX: true, TypeXLSX: true, TypeEPUB: true}
	zipExtensions = map[string]bool{".docx": true, ".docm": true, ".pptx": true, ".pptm": true, ".xlsx": true, ".xlsm": true, ".epub": true}
)

// encryptedPackage is the name of the stream that an encrypted Word, PowerPoint or Excel document has.
var encryptedPackage = []byte("E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e\x00")

// compoundKind says what a compound file is and why it is not read: it is a document of the old kind, or an encrypted one.
func compoundKind(content []byte) (string, error) {
	if bytes.Contains(content, encryptedPackage) {
		return "", reject(rag.ReasonEncrypted, "the document is encrypted; a password is needed to read it")
	}
	kind := mediaType(mimetype.Detect(content).String())
	return kind, errUnsupported(kind)
}
