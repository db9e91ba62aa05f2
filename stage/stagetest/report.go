package stagetest

import (
	"fmt"
	"strings"
)

// problem is a kind of fault; of each kind the first one is told.
type problem int

const (
	problemRepeat problem = iota
	problemMutation
	problemPlace
	problemHeld
	problemMissing
	problemForeign
	problemOrder
	problemLocalRow
	problemTableRow
	problemTimer
	problemMerge
	problemReplace
)

type finding struct {
	text  string
	count int
}

// maxBrief bounds what is shown of a value.
const maxBrief = 400

func brief(v any) string {
	text, ok := v.(string)
	if !ok {
		text = strings.TrimPrefix(fmt.Sprintf("%+v", v), "&")
	}
	if len(text) > maxBrief {
		return strings.ToValidUTF8(text[:maxBrief], "") + "…"
	}
	return text
}

func (r *runner) report(p problem, format string, args ...any) {
	if f := r.found[p]; f != nil {
		f.count++
		return
	}
	f := &finding{text: fmt.Sprintf(format, args...), count: 1}
	if r.now != nil {
		f.text += "\n\t" + r.now()
	}
	r.found[p] = f
	r.order = append(r.order, f)
}

// tell fails the test with every kind of fault.
func (r *runner) tell() {
	r.k.t.Helper()
	for _, f := range r.order {
		more := ""
		if f.count > 1 {
			more = fmt.Sprintf("\n\t(and %d more times like this)", f.count-1)
		}
		r.k.t.Errorf("stagetest: %s%s", f.text, more)
	}
}

func (r *runner) describe(s sent) string {
	key, value := "null", "null"
	if s.out.Key != nil {
		key = fmt.Sprintf("%q", s.out.Key)
	}
	if s.out.Value != nil {
		value = fmt.Sprintf("%q", s.out.Value)
		if show := r.k.show[s.out.Topic]; show != nil {
			value = show(s.out.Value)
		}
	}
	text := fmt.Sprintf("topic %s, key %s: %s", s.out.Topic, key, brief(value))
	for _, h := range s.out.Headers {
		text += fmt.Sprintf(" [%s=%q]", h.Key, brief(string(h.Value)))
	}
	return text
}

// list describes the first of some records, and says how many more there are.
func (r *runner) list(records []sent) string {
	const shown = 3
	var b strings.Builder
	for i, s := range records {
		if i == shown {
			fmt.Fprintf(&b, "\n\t  … and %d more", len(records)-shown)
			break
		}
		fmt.Fprintf(&b, "\n\t  %s", r.describe(s))
	}
	return b.String()
}
