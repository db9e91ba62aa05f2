package weaviate

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/go-openapi/strfmt"
	"github.com/weaviate/weaviate/entities/models"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/sinks/internal/terms"
)

// documentKey stands for a document id in filters, which trim white space and are limited in length.
func documentKey(documentID string) string {
	sum := sha256.Sum256([]byte(documentID))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// encode makes the server's form of an object. Only types are used that both REST and gRPC take: gRPC drops others without
// a word.
func (s *Store) encode(o *sinks.Object) *models.Object {
	c := &o.Chunk
	properties := map[string]any{
		propDocumentID:  c.DocumentID,
		propDocumentKey: documentKey(c.DocumentID),
		propVersion:     int64(c.Revision.Version),
		propGeneration:  c.Revision.Generation,
		propIndex:       c.Index,
		propCount:       c.Count,
		propStart:       c.Start,
		propEnd:         c.End,
		propPage:        c.Page,
		propTitle:       c.Title,
		propSource:      c.Source,
		propHeading:     c.Heading,
		propText:        c.Text,
		propTerms:       terms.Index(c.Text),
		propTitleTerms:  terms.Index(c.Title + "\n" + c.Heading),
	}
	if c.Parent != (rag.Parent{}) {
		properties[propParentStart], properties[propParentEnd], properties[propParentText] = c.Parent.Start, c.Parent.End, c.Parent.Text
	}
	if len(c.Metadata) > 0 {
		properties[propMetadata] = []string(c.Metadata)
	}
	return &models.Object{
		Class:      s.options.Collection,
		ID:         strfmt.UUID(o.ID),
		Tenant:     s.options.Tenant,
		Vector:     models.C11yVector(o.Vector),
		Properties: properties,
	}
}

// decode reads the properties of a chunk; fields that are not there stay empty.
func decode(properties map[string]any) (rag.Chunk, error) {
	var c rag.Chunk
	text := func(name string) string {
		s, _ := properties[name].(string)
		return s
	}
	var failed error
	number := func(name string) int64 {
		n, err := integer(properties[name])
		if err != nil && failed == nil {
			failed = fmt.Errorf("property %s: %w", name, err)
		}
		return n
	}
	c.DocumentID = text(propDocumentID)
	c.Revision = rag.Revision{Version: rag.Version(number(propVersion)), Generation: int(number(propGeneration))}
	c.Index, c.Count = int(number(propIndex)), int(number(propCount))
	c.Start, c.End, c.Page = int(number(propStart)), int(number(propEnd)), int(number(propPage))
	c.Title, c.Source, c.Heading, c.Text = text(propTitle), text(propSource), text(propHeading), text(propText)
	c.Parent = rag.Parent{Start: int(number(propParentStart)), End: int(number(propParentEnd)), Text: text(propParentText)}
	if list, ok := properties[propMetadata].([]any); ok {
		for _, pair := range list {
			if p, ok := pair.(string); ok {
				c.Metadata = append(c.Metadata, p)
			}
		}
	}
	return c, failed
}

// integer reads a whole number, in whichever form JSON gave it.
func integer(v any) (int64, error) {
	switch n := v.(type) {
	case nil:
		return 0, nil
	case float64:
		return int64(n), nil
	case json.Number:
		if i, err := n.Int64(); err == nil {
			return i, nil
		}
		f, err := strconv.ParseFloat(n.String(), 64)
		return int64(f), err
	}
	return 0, fmt.Errorf("%v is not a number", v)
}
