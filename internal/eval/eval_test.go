package eval

import (
	"context"
	"testing"

	"github.com/waymarkhq/waymark/rag/split"
	"github.com/waymarkhq/waymark/sinks"
)

// What make eval finds with the default splitter, less the slack of about three questions: a change of parser, splitter, model
// or store that loses more has to be looked at.
func TestTheDefaultFindsWhatItFound(t *testing.T) {
	set, err := Load(context.Background(), "../..")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Run(context.Background(), set, split.Options{Tokens: split.DefaultTokens, Overlap: split.DefaultOverlap}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for lang, modes := range map[string]map[sinks.Mode]struct{ mrr, recall float64 }{
		"en":    {sinks.ModeVector: {.18, .36}, sinks.ModeText: {.21, .33}, sinks.ModeHybrid: {.25, .48}},
		"ru":    {sinks.ModeVector: {.82, .92}, sinks.ModeText: {.70, .76}, sinks.ModeHybrid: {.89, .92}},
		"ru-en": {sinks.ModeHybrid: {.12, .25}},
		"en-ru": {sinks.ModeHybrid: {.30, .50}},
	} {
		for mode, least := range modes {
			s := got.Scores[lang][mode]
			if s.MRR < least.mrr || s.Recall[depth] < least.recall {
				t.Errorf("%s, %s: MRR %.2f and recall %.2f, at least %.2f and %.2f were expected", lang, mode, s.MRR, s.Recall[depth], least.mrr, least.recall)
			}
		}
	}
	if n := got.Scores["en"][sinks.ModeText].Questions; n < 40 || got.Chunks < 1500 || got.Chunks > 2000 {
		t.Errorf("%d English questions, %d chunks", n, got.Chunks)
	}
}

// A reader who is given the parent of a chunk reads more of the answer than one who is given the chunk.
func TestParentsAnswerMore(t *testing.T) {
	set, err := Load(context.Background(), "../..")
	if err != nil {
		t.Fatal(err)
	}
	small := split.Options{Tokens: 100, Overlap: 15}
	alone, err := Run(context.Background(), set, small, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	small.Parent = 400
	inParents, err := Run(context.Background(), set, small, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, lang := range []string{"en", "ru"} {
		if a, b := alone.Scores[lang][sinks.ModeHybrid].MRR, inParents.Scores[lang][sinks.ModeHybrid].MRR; b < a+.05 {
			t.Errorf("%s: MRR %.2f alone, %.2f in parents", lang, a, b)
		}
	}
}

func TestScores(t *testing.T) {
	got := scores(map[string]map[sinks.Mode][]int{"en": {sinks.ModeText: {1, 0, 4, 10}}})["en"][sinks.ModeText]
	if got.Questions != 4 || got.MRR != (1+.25+.1)/4 || got.Recall[1] != .25 || got.Recall[5] != .5 || got.Recall[10] != .75 {
		t.Errorf("got %+v", got)
	}
}
