package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/waymarkhq/waymark/cmd/waymark/internal/console"
)

// writeJSON writes one object as one line of the results.
func (e *environment) writeJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	e.console.Printf("%s", b.Bytes())
	return nil
}

// table writes rows to the results.
func (e *environment) table(rows [][]string) error {
	return console.Table(e.console.Out(), rows, e.console.Width())
}

// properties writes names and values; those without a value are left out.
func (e *environment) properties(pairs [][2]string) error {
	var rows [][]string
	for _, p := range pairs {
		if p[1] != "" {
			rows = append(rows, []string{p[0], p[1]})
		}
	}
	return console.Table(e.console.Out(), rows, 0)
}

// timestamp is a time as people read it: UTC, to the second.
func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// plural is "1 chunk", "1,024 chunks".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return console.Count(n) + " " + noun + "s"
}

// counts writes the non-zero counts of keys in an order: "60 indexed, 3 dead".
func counts[K ~string](order []K, of map[K]int64) string {
	var parts []string
	for _, key := range order {
		if n := of[key]; n != 0 {
			parts = append(parts, console.Count(int(n))+" "+string(key))
		}
	}
	return strings.Join(parts, ", ")
}
