package processors_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/embed"
	"github.com/waymarkhq/waymark/stage"
)

// failing answers with an error for one text.
func failing(text string, err error) func(texts []string) ([]embed.Result, error) {
	return func(texts []string) ([]embed.Result, error) {
		results := vectors(texts)
		if i := slices.Index(texts, text); i >= 0 {
			results[i] = embed.Result{Err: err}
		}
		return results, nil
	}
}

func TestFailureOfOneText(t *testing.T) {
	refused := &embed.Error{Class: rag.ClassMessage, Reason: rag.ReasonEmbedderRefused, Err: errors.New("too long for the model")}
	odd := &embed.Error{Class: rag.ClassTransient, Reason: rag.ReasonBadVector, Err: errors.New("the vector is zero")}
	for name, tc := range map[string]struct {
		err     error
		verdict string
	}{
		"refused":    {refused, "dead embedder:message:embedder_refused"},
		"bad vector": {odd, "retrying embedder:transient:bad_vector"},
		"unknown":    {errors.New("odd"), "retrying embedder:transient:embedder_error"},
	} {
		t.Run(name, func(t *testing.T) {
			service := &fakeService{answer: failing("bad", tc.err)}
			run := embedderKit(t, service).Run(steps(slices.Concat(chunksOf(t, "a", "one", "bad"), chunksOf(t, "b", "two"), chunksOf(t, "c", "bad"))...)...)
			want(t, run.Outputs(), "vector a/m@0.0 0/2 [3 111]", "vector b/m@0.0 0/1 [3 116]", "verdict a/m@0.0 "+tc.verdict, "verdict c/m@0.0 "+tc.verdict)
		})
	}
}

func TestFailureOfTheWholeCall(t *testing.T) {
	outage := &embed.Error{Class: rag.ClassOutage, Reason: embed.ReasonOverloaded, RetryAfter: 7 * time.Second, Err: errors.New("429")}
	for name, tc := range map[string]struct {
		err    error
		class  stage.Class
		reason string
		after  time.Duration
	}{
		"outage":    {outage, stage.ClassOutage, embed.ReasonOverloaded, 7 * time.Second},
		"transient": {&embed.Error{Class: rag.ClassTransient, Reason: embed.ReasonUnknown}, stage.ClassTransient, embed.ReasonUnknown, 0},
		"wrapped":   {fmt.Errorf("call: %w", outage), stage.ClassOutage, embed.ReasonOverloaded, 7 * time.Second},
		"unknown":   {errors.New("odd"), stage.ClassTransient, "none", 0},
	} {
		t.Run(name, func(t *testing.T) {
			service := &fakeService{answer: func([]string) ([]embed.Result, error) { return nil, tc.err }}
			res := batch(t, newEmbedder(service), nil, chunksOf(t, "a", "one", "two", "one")...)
			if len(res.Outputs) != 0 || len(res.Rows) != 0 || len(res.Errors) != 3 {
				t.Fatalf("sent %v, rows %v, errors %v", told(t, res.Outputs), res.Rows, res.Errors)
			}
			for i, err := range res.Errors {
				var e *stage.Error
				if errors.As(err, &e); stage.ClassOf(err) != tc.class || stage.ReasonOf(err, "none") != tc.reason || e != nil && e.After != tc.after {
					t.Errorf("error %d is %v (%v, %s)", i, err, stage.ClassOf(err), stage.ReasonOf(err, "none"))
				}
			}
		})
	}
}

// What a call that failed as a whole has done stands: it is sent and kept, and only the rest is asked for again.
func TestPartlyDoneCall(t *testing.T) {
	outage := &embed.Error{Class: rag.ClassOutage, Reason: embed.ReasonUnavailable, Err: errors.New("reset")}
	service := &fakeService{answer: func(texts []string) ([]embed.Result, error) {
		results := vectors(texts)
		results[1] = embed.Result{}
		results[2] = embed.Result{Err: &embed.Error{Class: rag.ClassMessage, Reason: rag.ReasonEmbedderRefused}}
		return results, outage
	}}
	outs := chunksOf(t, "a", "one", "two", "three")
	res := batch(t, newEmbedder(service), nil, outs...)
	want(t, res.Outputs, "vector a/m@0.0 0/3 [3 111]")
	if len(res.Rows) != 1 || res.Rows[string(outs[0].Key)] == nil {
		t.Errorf("rows %v", res.Rows)
	}
	if stage.ClassOf(res.Errors[1]) != stage.ClassOutage || stage.ClassOf(res.Errors[2]) != stage.ClassMessage || len(res.Errors) != 2 {
		t.Errorf("errors %v", res.Errors)
	}
}

// A reply that does not answer every text must not let one pass as done: its version would wait for ever.
func TestRepliesThatDoNotFit(t *testing.T) {
	for name, answer := range map[string]func(texts []string) ([]embed.Result, error){
		"too few":  func(texts []string) ([]embed.Result, error) { return vectors(texts[1:]), nil },
		"too many": func(texts []string) ([]embed.Result, error) { return append(vectors(texts), vectors(texts)...), nil },
		"too many and failed": func(texts []string) ([]embed.Result, error) {
			return append(vectors(texts), vectors(texts)...), errors.New("odd")
		},
		"none":                 func([]string) ([]embed.Result, error) { return nil, nil },
		"neither of the two":   func(texts []string) ([]embed.Result, error) { return make([]embed.Result, len(texts)), nil },
		"some have no outcome": func(texts []string) ([]embed.Result, error) { return append(vectors(texts[:1]), embed.Result{}), nil },
	} {
		t.Run(name, func(t *testing.T) {
			res := batch(t, newEmbedder(&fakeService{answer: answer}), nil, chunksOf(t, "a", "one", "two")...)
			if len(res.Outputs)+len(res.Errors) != 2 {
				t.Fatalf("of two chunks: sent %v, errors %v", told(t, res.Outputs), res.Errors)
			}
			for i, err := range res.Errors {
				if err == nil || stage.ClassOf(err) != stage.ClassTransient {
					t.Errorf("error %d is %v", i, err)
				}
			}
		})
	}
}
