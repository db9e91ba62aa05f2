package console_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/cmd/waymark/internal/console"
)

func TestCleanDisarmsTerminals(t *testing.T) {
	for text, want := range map[string]string{
		"a\x1b[2Jb": "a\ufffd[2Jb", "a\nb\t c": "a b c", " x ": "x", "a\u202eb": "a\ufffdb", "a\xffb": "a\ufffdb", "\u009b31m": "\ufffd31m",
	} {
		if got := console.Clean(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, tc := range []struct {
		text         string
		width, limit int
		want         []string
	}{
		{"one two three", 8, 0, []string{"one two", "three"}},
		{"one two three", 0, 1, []string{"one two three"}},
		{"one two three four", 8, 2, []string{"one two", "three…"}},
		{"one two three four", 5, 2, []string{"one", "two…"}},
		{"日本語日本語", 5, 0, []string{"日本", "語日", "本語"}},
		{"abcdefghij", 4, 2, []string{"abcd", "efg…"}},
		{"AA-", 2, 0, []string{"AA", "-"}},
		{"", 10, 0, []string{""}},
	} {
		if got := console.Wrap(tc.text, tc.width, tc.limit); !slices.Equal(got, tc.want) {
			t.Errorf("%q in %d: got %q, want %q", tc.text, tc.width, got, tc.want)
		}
	}
}

func TestWrapProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, width := rapid.String().Draw(t, "text"), rapid.IntRange(2, 60).Draw(t, "width")
		limit := rapid.IntRange(0, 4).Draw(t, "limit")
		lines := console.Wrap(text, width, limit)
		if limit > 0 && len(lines) > limit {
			t.Fatalf("%d lines, want at most %d", len(lines), limit)
		}
		for _, line := range lines {
			if ansi.StringWidth(line) > width {
				t.Fatalf("%q has %d columns, want at most %d", line, ansi.StringWidth(line), width)
			}
			if strings.ContainsFunc(line, unicode.IsControl) {
				t.Fatalf("%q has control characters", line)
			}
		}
	})
}

func TestTable(t *testing.T) {
	rows := [][]string{{"ID", "STATUS", "WHY"}, {"日本", "dead", "a long\nreason"}, {"long-id", "ok", ""}}
	for width, want := range map[int]string{
		0:  "ID        STATUS   WHY\n日本      dead     a long reason\nlong-id   ok\n",
		24: "ID        STATUS   WHY\n日本      dead     a lo…\nlong-id   ok\n",
	} {
		var out bytes.Buffer
		if err := console.Table(&out, rows, width); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
		}
	}
}
