package parse

import (
	"fmt"
	"path"
	"strings"
)

// packed maps declared types of what is not text to the types that a Parser knows.
var packed = map[string]string{
	TypePDF: TypePDF, "application/x-pdf": TypePDF,
	TypeDOCX: TypeDOCX, "application/vnd.ms-word.document.macroenabled.12": TypeDOCX,
	TypePPTX: TypePPTX, "application/vnd.ms-powerpoint.presentation.macroenabled.12": TypePPTX,
	TypeXLSX: TypeXLSX, "application/vnd.ms-excel.sheet.macroenabled.12": TypeXLSX,
	TypeEPUB: TypeEPUB, TypeRTF: TypeRTF, "text/rtf": TypeRTF,
}

// packedExtensions maps extensions of names in the same way.
var packedExtensions = map[string]string{
	".pdf": TypePDF, ".docx": TypeDOCX, ".docm": TypeDOCX, ".pptx": TypePPTX, ".pptm": TypePPTX,
	".xlsx": TypeXLSX, ".xlsm": TypeXLSX, ".epub": TypeEPUB, ".rtf": TypeRTF,
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".mp3": "audio/mpeg", ".mp4": "video/mp4",
}

// contradictions are the warnings about what was said of a document that is read as kind: its declared type, and its name
// where nothing was declared. What was called plain text, or text alone, contradicts no kind of text.
func contradictions(kind, declared, name string) []string {
	said, source := readable[declared], fmt.Sprintf("was declared as %s", declared)
	if said == "" {
		said = packed[declared]
	}
	foreign := strings.HasPrefix(declared, "image/") || strings.HasPrefix(declared, "audio/") || strings.HasPrefix(declared, "video/")
	switch {
	case foreign && declared != "image/svg+xml":
		said = declared
	case said == "" && declared == "":
		ext := strings.ToLower(path.Ext(name))
		if said = extensions[ext]; said == "" {
			said = packedExtensions[ext]
		}
		source = "is called " + ext
	}
	if said == "" || said == kind || said == TypePlain && isTextKind(kind) || said == TypeXML && kind == TypeHTML {
		return nil
	}
	return []string{fmt.Sprintf("The document %s, but its content is %s; it was read as that.", source, kind)}
}

// isTextKind reports whether documents of a kind are text that people write by hand.
func isTextKind(kind string) bool {
	return packed[kind] == "" && kind != TypeMail
}
