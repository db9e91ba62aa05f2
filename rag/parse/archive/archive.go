// Package archive opens the ZIP archives that documents of several formats are, and bounds what they unpack to.
package archive

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"golang.org/x/net/html/charset"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/flow"
)

// Limits of an archive. What exceeds them is a *flow.Error with rag.ReasonArchiveBomb.
const (
	MaxEntries = 10_000
	MaxSize    = 256 << 20 // bytes unpacked, all that is read counted
	// MaxRatio is how many times its packed size an archive of more than FreeSize may unpack to.
	MaxRatio = 200
	FreeSize = 16 << 20
)

// Archive is an open archive. It is for one goroutine.
type Archive struct {
	files map[string]*zip.File // by lower-case name: some programs change the case
	left  int64                // bytes that may still be read
}

// Open checks what the archive says about itself. What it really unpacks to is checked while it is read.
func Open(content []byte) (*Archive, error) {
	z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, flow.Reject(rag.ReasonBrokenFile, "the document is damaged: it is not a whole ZIP archive")
	}
	if len(z.File) > MaxEntries {
		return nil, flow.Reject(rag.ReasonArchiveBomb, "the document is an archive of %d files, more than the limit of %d", len(z.File), MaxEntries)
	}
	a := &Archive{files: make(map[string]*zip.File, len(z.File)), left: MaxSize}
	a.left = min(a.left, max(FreeSize, MaxRatio*int64(len(content))))
	var size uint64
	for _, f := range z.File {
		if size += f.UncompressedSize64; f.UncompressedSize64 > MaxSize || size > uint64(a.left) {
			return nil, a.bomb()
		}
		if f.Flags&1 != 0 {
			return nil, flow.Reject(rag.ReasonEncrypted, "the document is an archive with a password")
		}
		name := strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(f.Name, `\`, "/"), "/"))
		if a.files[name] == nil {
			a.files[name] = f
		}
	}
	return a, nil
}

func (a *Archive) bomb() error {
	return flow.Reject(rag.ReasonArchiveBomb, "the document is an archive that unpacks to more than %d MiB, or to more than %d times its size", MaxSize>>20, MaxRatio)
}

// Has reports whether there is a file of that name.
func (a *Archive) Has(name string) bool { return a.files[strings.ToLower(name)] != nil }

// Names are the names of all files, in lower case and in no order.
func (a *Archive) Names() []string {
	names := make([]string, 0, len(a.files))
	for n := range a.files {
		names = append(names, n)
	}
	return names
}

// Reader opens a file. A file that is missing is a *flow.Error.
func (a *Archive) Reader(name string) (io.ReadCloser, error) {
	f := a.files[strings.ToLower(name)]
	if f == nil {
		return nil, flow.Reject(rag.ReasonBrokenFile, "the document is damaged: %s is missing in it", path.Base(name))
	}
	r, err := f.Open()
	if err != nil {
		return nil, flow.Reject(rag.ReasonBrokenFile, "the document is damaged: %s cannot be unpacked", path.Base(name))
	}
	return &bounded{r, a, path.Base(name)}, nil
}

// bounded counts what is read of a file.
type bounded struct {
	io.ReadCloser
	archive *Archive
	name    string
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.archive.left -= int64(n); b.archive.left < 0 {
		return 0, b.archive.bomb()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return n, flow.Reject(rag.ReasonBrokenFile, "the document is damaged: %s cannot be unpacked", b.name)
	}
	return n, err
}

// Bytes reads a whole file.
func (a *Archive) Bytes(name string) ([]byte, error) {
	r, err := a.Reader(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// Walk calls visit for each token of an XML file until it returns an error. An XML error is a *flow.Error. Entities that
// the file defines itself are not expanded.
func (a *Archive) Walk(name string, visit func(xml.Token) error) error {
	r, err := a.Reader(name)
	if err != nil {
		return err
	}
	defer r.Close()
	d := xml.NewDecoder(r)
	d.Strict = false
	d.CharsetReader = charset.NewReaderLabel
	for {
		t, err := d.RawToken()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case flow.IsReject(err):
			return err
		case err != nil:
			return flow.Reject(rag.ReasonBrokenFile, "the document is damaged: %s is not XML: %s", path.Base(name), shortened(err))
		}
		if err := visit(t); err != nil {
			return err
		}
	}
}

func shortened(err error) string { return fmt.Sprintf("%.100s", err.Error()) }

// Relations are the targets of a part's relationships: by id, as names in the archive, and the first of each kind.
type Relations struct {
	ByID   map[string]string
	ByKind map[string]string // the last word of the type: "officeDocument", "footnotes"
}

// Relations reads the relationships of a part of an Office document; "" is the document itself. Missing ones are empty.
func (a *Archive) Relations(part string) (Relations, error) {
	dir, base := path.Split(part)
	rel := Relations{map[string]string{}, map[string]string{}}
	name := path.Join(dir, "_rels", base+".rels")
	if !a.Has(name) {
		return rel, nil
	}
	err := a.Walk(name, func(t xml.Token) error {
		e, ok := t.(xml.StartElement)
		if !ok || e.Name.Local != "Relationship" || Attr(e, "TargetMode") == "External" {
			return nil
		}
		target := Attr(e, "Target")
		if !strings.HasPrefix(target, "/") {
			target = path.Join(dir, target)
		}
		target = strings.TrimPrefix(path.Clean(target), "/")
		rel.ByID[Attr(e, "Id")] = target
		if kind := path.Base(Attr(e, "Type")); rel.ByKind[kind] == "" {
			rel.ByKind[kind] = target
		}
		return nil
	})
	return rel, err
}

// Attr is the value of an attribute by its local name.
func Attr(e xml.StartElement, local string) string {
	for _, a := range e.Attr {
		if a.Name.Local == local {
			return a.Value
		}
	}
	return ""
}
