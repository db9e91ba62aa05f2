package main

import (
	"strings"
	"testing"
)

func TestExplore(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		says   string
		failed string
	}{
		"a few seeds":          {[]string{"-n", "3", "-t", "1m"}, "3 runs,", ""},
		"a mutant is caught":   {[]string{"-mutant", "newest offset"}, "seed 1: I5", "broke a promise"},
		"a hole, shrunk":       {[]string{"-unfix", "H5", "-shrink"}, "shrunk to", "broke a promise"},
		"an unknown mutant":    {[]string{"-mutant", "none such"}, "", `no mutant "none such"`},
		"an unknown hole":      {[]string{"-unfix", "H1,H99"}, "", `no hole "H99"`},
		"an unknown rule":      {[]string{"-drop", "nothing"}, "", `no rule "nothing"`},
		"an unknown table":     {[]string{"-table", "seeds"}, "", `no table "seeds"`},
		"a table of few seeds": {[]string{"-table", "mutants", "-n", "1"}, "| acks=1 | 1 |", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := run(c.args, &out)
			if !strings.Contains(out.String(), c.says) {
				t.Errorf("printed %q", out.String())
			}
			if (err == nil) != (c.failed == "") || err != nil && !strings.Contains(err.Error(), c.failed) {
				t.Errorf("ended with %v", err)
			}
		})
	}
}
