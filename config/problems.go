package config

import (
	"fmt"
	"sort"
	"strings"
)

// Problem is one thing that is wrong with the configuration.
type Problem struct {
	// Origin is the file and line, the variable or the flag; zero when a default, or something missing, is the problem.
	Origin Origin
	// Key of the value, "" where the problem has none.
	Key string
	// Message is one sentence for people; it never holds a secret.
	Message string
}

func (p Problem) String() string {
	var parts []string
	if p.Origin != (Origin{}) {
		parts = append(parts, p.Origin.String())
	}
	if p.Key != "" && p.Origin.Source != "--"+p.Key {
		parts = append(parts, p.Key)
	}
	return strings.Join(append(parts, p.Message), ": ")
}

// Problems is the error of Load and Validate: everything that is wrong, at once.
type Problems []Problem

func (p Problems) Error() string {
	var b strings.Builder
	if len(p) == 1 {
		return "configuration: " + p[0].String()
	}
	fmt.Fprintf(&b, "configuration: %d problems", len(p))
	for _, problem := range p {
		b.WriteString("\n  " + problem.String())
	}
	return b.String()
}

// report collects problems; a key whose text could not be read is not judged a second time.
type report struct {
	origins map[string]Origin
	broken  map[string]bool
	list    Problems
}

// add reports a problem of a key's value.
func (r *report) add(key, format string, args ...any) {
	if r.broken[key] {
		return
	}
	r.list = append(r.list, Problem{Origin: r.origins[key], Key: key, Message: fmt.Sprintf(format, args...)})
}

// addFirst reports a contradiction between keys under the first of them that somebody has set.
func (r *report) addFirst(keys []string, format string, args ...any) {
	at := keys[0]
	for _, key := range keys {
		if r.broken[key] {
			return
		}
	}
	for _, key := range keys {
		if r.origins[key] != (Origin{}) {
			at = key
			break
		}
	}
	r.add(at, format, args...)
}

// err is everything reported: what a file says in the order of its lines, then the rest.
func (r *report) err() error {
	if len(r.list) == 0 {
		return nil
	}
	sort.SliceStable(r.list, func(i, j int) bool {
		a, b := r.list[i].Origin.Line, r.list[j].Origin.Line
		return a != 0 && (b == 0 || a < b)
	})
	return r.list
}

// nearest is the candidate that text was probably meant to be, or "".
func nearest(text string, candidates []string) string {
	best, limit := "", len(text)/3+1
	for _, c := range candidates {
		if d := editDistance(text, c); d <= limit {
			best, limit = c, d-1
		}
	}
	return best
}

// editDistance counts the insertions, deletions and replacements of bytes between a and b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

func didYouMean(text string, candidates []string) string {
	if n := nearest(text, candidates); n != "" {
		return "; did you mean " + n + "?"
	}
	return ""
}
