// Package eval measures how well questions find the passages that answer them: a labelled set in English and Russian, the
// product's own parser, splitter, built-in model and SQLite store. make eval prints the table of docs/quality.md.
package eval

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // the questions
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/waymarkhq/waymark/rag/parse"
	"github.com/waymarkhq/waymark/rag/split"
)

// Question asks for one passage.
type Question struct {
	// Lang is the language of the question; "ru-en" asks in Russian for an English passage.
	Lang     string `json:"lang"`
	Document string `json:"doc"`
	Question string `json:"question"`
	Passage  string `json:"passage"`

	span split.Span // of the passage in the document's text
}

// Set is what is searched, and for what.
type Set struct {
	Documents map[string]parse.Text
	Questions []Question
}

//go:embed testdata/questions.jsonl
var questions []byte

// folders of the documents, below the project's root, by the first part of their names.
var folders = map[string]string{"articles": "examples/articles", "ru": "internal/eval/testdata/ru"}

// formats that are read: all but those that need PDFium, which takes longer to start than everything else together.
var formats = []string{".txt", ".md", ".html", ".docx"}

// dead is an example that cannot be read on purpose.
const dead = "portraits.html"

// Load reads the set; root is the project's folder.
func Load(ctx context.Context, root string) (*Set, error) {
	parser, err := parse.New(parse.Limits{})
	if err != nil {
		return nil, err
	}
	defer parser.Close()
	s := &Set{Documents: map[string]parse.Text{}}
	for name, folder := range folders {
		entries, err := os.ReadDir(filepath.Join(root, folder))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if !slices.Contains(formats, filepath.Ext(e.Name())) || e.Name() == dead {
				continue
			}
			content, err := os.ReadFile(filepath.Join(root, folder, e.Name()))
			if err != nil {
				return nil, err
			}
			text, err := parser.Parse(ctx, parse.Input{Content: content, Name: e.Name()})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", e.Name(), err)
			}
			s.Documents[name+"/"+e.Name()] = text
		}
	}
	return s, s.readQuestions()
}

func (s *Set) readQuestions() error {
	lines := bufio.NewScanner(bytes.NewReader(questions))
	for n := 1; lines.Scan(); n++ {
		var q Question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return fmt.Errorf("question %d: %w", n, err)
		}
		text, ok := s.Documents[q.Document]
		if !ok {
			return fmt.Errorf("question %d: there is no document %s", n, q.Document)
		}
		places := pattern(q.Passage).FindAllStringIndex(text.Body, -1)
		if len(places) != 1 {
			return fmt.Errorf("question %d: the passage %q stands %d times in %s", n, q.Passage, len(places), q.Document)
		}
		q.span = split.Span{Start: places[0][0], End: places[0][1]}
		s.Questions = append(s.Questions, q)
	}
	return lines.Err()
}

// pattern finds a passage whatever its line breaks are.
func pattern(passage string) *regexp.Regexp {
	var words []string
	for word := range strings.FieldsSeq(passage) {
		words = append(words, regexp.QuoteMeta(word))
	}
	return regexp.MustCompile(strings.Join(words, `\s+`))
}

// answers reports whether the slice holds at least half of the passage.
func (q *Question) answers(s split.Span) bool {
	common := min(s.End, q.span.End) - max(s.Start, q.span.Start)
	return 2*common >= q.span.End-q.span.Start
}
