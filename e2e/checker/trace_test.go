package checker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// traceOf writes a trace of one claim: "delivered 3" and so on.
func traceOf(t *testing.T, events ...string) string {
	t.Helper()
	var b strings.Builder
	for _, e := range events {
		name, offset, _ := strings.Cut(e, " ")
		line := traced{PID: 1, Session: "s", Event: name, Topic: "t"}
		if err := json.Unmarshal([]byte(offset), &line.Offset); err != nil {
			t.Fatal(err)
		}
		out, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(out, '\n'))
	}
	file := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(file, []byte(b.String()+`{"pid": 1, "ev`), 0o600); err != nil { // killed while writing
		t.Fatal(err)
	}
	return file
}

func TestCheckTrace(t *testing.T) {
	start := []string{"claimed 0", "delivered 0", "delivered 1", "delivered 5", "held 0", "held 1", "held 5"}
	for name, c := range map[string]struct {
		rest  []string
		marks int
		says  string
	}{
		"in order":                           {[]string{"acked 0", "finished 0", "marked 1", "acked 1", "finished 1", "marked 2"}, 2, ""},
		"out of order, marked without a gap": {[]string{"acked 1", "finished 1", "acked 5", "finished 5", "acked 0", "finished 0", "marked 6"}, 1, ""},
		"marked over one that is unfinished": {[]string{"acked 1", "finished 1", "marked 2"}, 1, "2 is marked while 0 is not finished"},
		"marked over an abandoned one":       {[]string{"abandoned 0", "acked 1", "finished 1", "marked 2"}, 1, "2 is marked while 0 is not finished"},
		"marked back":                        {[]string{"acked 0", "finished 0", "acked 1", "finished 1", "marked 2", "marked 1"}, 2, "1 is marked after 2"},
		"finished without acknowledgement":   {[]string{"finished 0", "marked 1"}, 1, "0 is finished while 1 sends are not acknowledged"},
		"finished after a failed send":       {[]string{"failed 0", "finished 0"}, 0, "0 is finished while 1 sends are not acknowledged"},
		"sent after the end":                 {[]string{"acked 0", "finished 0", "held 0"}, 0, "something is sent on behalf of 0"},
		"sent after the mark":                {[]string{"acked 0", "finished 0", "marked 1", "held 0"}, 1, "something is sent on behalf of 0"},
		"finished twice":                     {[]string{"acked 0", "finished 0", "finished 0"}, 0, "finished twice"},
	} {
		t.Run(name, func(t *testing.T) {
			marks, violations, err := CheckTrace(traceOf(t, append(start, c.rest...)...))
			if err != nil || marks != c.marks {
				t.Fatalf("%d marks: %v", marks, err)
			}
			all := strings.Join(violations, "\n")
			if (c.says == "") != (all == "") || !strings.Contains(all, c.says) {
				t.Errorf("it says %q, want %q", all, c.says)
			}
		})
	}
}

func TestCheckTraceTellsClaimsApart(t *testing.T) {
	// A new claim begins with what the old one had not finished.
	marks, violations, err := CheckTrace(traceOf(t, "claimed 0", "delivered 0", "claimed 0", "delivered 0", "finished 0", "marked 1"))
	if err != nil || marks != 1 || len(violations) > 0 {
		t.Errorf("%d marks, %v, %v", marks, violations, err)
	}
}
