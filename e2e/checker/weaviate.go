package checker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// Weaviate is a server that is asked by its own REST interface.
type Weaviate struct {
	URL    string // such as http://127.0.0.1:8080
	Client *http.Client
}

// WeaviateObject is one object of a collection, as the server lists it.
type WeaviateObject struct {
	ID         string    `json:"id"`
	Vector     []float32 `json:"vector"`
	Properties struct {
		DocumentID string  `json:"documentId"`
		Version    float64 `json:"version"`
		Generation int     `json:"generation"`
		Number     int     `json:"number"`
		Start      int     `json:"start"`
		End        int     `json:"end"`
		Text       string  `json:"text"`
	} `json:"properties"`
}

// Call sends a request with JSON and decodes the answer; body and into may be nil.
func (w Weaviate) Call(ctx context.Context, method, path string, body, into any) error {
	var send io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		send = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, w.URL+path, send)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := w.Client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %d: %s", method, path, res.StatusCode, b)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(b, into)
}

// Objects lists a collection, with vectors.
func (w Weaviate) Objects(ctx context.Context, collection string) ([]WeaviateObject, error) {
	const page = 500
	var all []WeaviateObject
	for after := ""; ; {
		var answer struct{ Objects []WeaviateObject }
		if err := w.Call(ctx, http.MethodGet, fmt.Sprintf("/v1/objects?include=vector&limit=%d&class=%s&after=%s", page, collection, after), nil, &answer); err != nil {
			return nil, err
		}
		all = append(all, answer.Objects...)
		if len(answer.Objects) < page {
			return all, nil
		}
		after = all[len(all)-1].ID
	}
}

// Unsearchable are the objects that no search for their own vector finds. Counts and lists do not tell: an object can be
// there whose vector is not in the index.
func (w Weaviate) Unsearchable(ctx context.Context, collection string, objects []WeaviateObject) ([]WeaviateObject, error) {
	const neighbours, together = 16, 50
	var lost []WeaviateObject
	for some := range slices.Chunk(objects, together) {
		var query strings.Builder
		query.WriteString("{Get {")
		for i, o := range some {
			vector, err := json.Marshal(o.Vector)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&query, "q%d: %s(limit: %d, nearVector: {vector: %s}) {_additional {id distance}} ", i, collection, neighbours, vector)
		}
		query.WriteString("}}")
		var answer struct {
			Data struct {
				Get map[string][]struct {
					Additional struct {
						ID       string
						Distance float64
					} `json:"_additional"`
				}
			}
			Errors []any
		}
		if err := w.Call(ctx, http.MethodPost, "/v1/graphql", map[string]string{"query": query.String()}, &answer); err != nil {
			return nil, err
		}
		if len(answer.Errors) > 0 {
			return nil, fmt.Errorf("graphql: %v", answer.Errors)
		}
		for i, o := range some {
			hits := answer.Data.Get[fmt.Sprintf("q%d", i)]
			found := len(hits) == neighbours && hits[neighbours-1].Additional.Distance < 1e-5 // crowded out by its doubles
			for _, h := range hits {
				found = found || h.Additional.ID == o.ID
			}
			if !found {
				lost = append(lost, o)
			}
		}
	}
	return lost, nil
}

// Read lists a collection as Target.Objects wants it. An object that no search by its vector finds is an error.
func (w Weaviate) Read(ctx context.Context, collection string) (map[string][]Object, error) {
	objects, err := w.Objects(ctx, collection)
	if err != nil {
		return nil, err
	}
	lost, err := w.Unsearchable(ctx, collection, objects)
	if err != nil {
		return nil, err
	}
	if len(lost) > 0 {
		return nil, fmt.Errorf("%d of %d objects are not found by their vectors, such as %s of %s", len(lost), len(objects), lost[0].ID, lost[0].Properties.DocumentID)
	}
	out := map[string][]Object{}
	for _, o := range objects {
		p := o.Properties
		out[p.DocumentID] = append(out[p.DocumentID], Object{ID: []byte(o.ID), Version: int64(p.Version), Generation: p.Generation,
			Number: p.Number, Start: p.Start, End: p.End, Text: p.Text, Vector: o.Vector})
	}
	for _, of := range out {
		slices.SortFunc(of, func(a, b Object) int {
			return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Generation, b.Generation), cmp.Compare(a.Number, b.Number))
		})
	}
	return out, nil
}
