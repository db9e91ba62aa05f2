package checker

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"math"
	"net/url"

	_ "modernc.org/sqlite" // the driver
)

// Object is what the store holds of one chunk.
type Object struct {
	ID         []byte
	Version    int64
	Generation int
	Number     int
	Start, End int
	Text       string
	Vector     []float32
}

// ReadStore reads all objects of a store's file, each document's by version and number. It writes nothing.
func ReadStore(ctx context.Context, path string) (map[string][]Object, error) {
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"_pragma": {"busy_timeout(20000)", "query_only(1)"}}.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, `SELECT document, chunk.id, version, generation, number, start, "end", text, value
		FROM chunk LEFT JOIN vector ON vector.chunk = chunk.key ORDER BY document, version, generation, number`)
	if err != nil {
		return nil, fmt.Errorf("reading the store: %w", err)
	}
	defer rows.Close()
	out := map[string][]Object{}
	for rows.Next() {
		var document string
		var vector []byte
		var o Object
		if err := rows.Scan(&document, &o.ID, &o.Version, &o.Generation, &o.Number, &o.Start, &o.End, &o.Text, &vector); err != nil {
			return nil, fmt.Errorf("reading the store: %w", err)
		}
		for ; len(vector) >= 4; vector = vector[4:] {
			o.Vector = append(o.Vector, math.Float32frombits(binary.LittleEndian.Uint32(vector)))
		}
		out[document] = append(out[document], o)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading the store: %w", err)
	}
	return out, nil
}

// checkStored: the objects of a document are exactly the chunks that readers see (I2, I3), and no more.
func checkStored(documentID string, objects []Object, hits []Hit) error {
	if len(objects) != len(hits) {
		return fmt.Errorf("I2: %s: the store holds %d objects %s, %d are served", documentID, len(objects), versionsOf(objects), len(hits))
	}
	for i, o := range objects {
		h := hits[i]
		switch {
		case o.Version != h.Version:
			return fmt.Errorf("I3: %s: the store holds a chunk of version %d, served is %d", documentID, o.Version, h.Version)
		case o.Generation != objects[0].Generation:
			return fmt.Errorf("I3: %s: the store holds chunks of generations %d and %d", documentID, objects[0].Generation, o.Generation)
		case o.Number != h.Index || o.Start != h.Start || o.End != h.End || o.Text != h.Text:
			return fmt.Errorf("I2: %s: chunk %d in the store is not the one that is served", documentID, h.Index)
		}
	}
	return nil
}

func versionsOf(objects []Object) string {
	count := map[[2]int64]int{}
	for _, o := range objects {
		count[[2]int64{o.Version, int64(o.Generation)}]++
	}
	return fmt.Sprintf("(by version and generation: %v)", count)
}

// checkVectors: the vector of every object is what embed gives for its text (I4).
func checkVectors(documentID string, objects []Object, embed func(text string, dimensions int) []float32) error {
	for _, o := range objects {
		if len(o.Vector) == 0 {
			return fmt.Errorf("I4: %s: chunk %d has no vector", documentID, o.Number)
		}
		want := embed(o.Text, len(o.Vector))
		for i := range want {
			if o.Vector[i] != want[i] {
				return fmt.Errorf("I4: %s: the vector of chunk %d is not that of its text", documentID, o.Number)
			}
		}
	}
	return nil
}
