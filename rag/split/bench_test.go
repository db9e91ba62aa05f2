package split

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// hostile texts: each made of n bytes, each something that a careless splitter takes quadratic time or memory for.
var hostile = map[string]func(n int) string{
	"one word":           func(n int) string { return strings.Repeat("a", n) },
	"base64":             func(n int) string { return strings.Repeat("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo", n/36) },
	"spaces":             func(n int) string { return "a." + strings.Repeat(" ", n) + "b" },
	"wide spaces":        func(n int) string { return "a." + strings.Repeat("\u3000", n/3) + "b" },
	"closing marks":      func(n int) string { return "a." + strings.Repeat(")", n) },
	"wide closing marks": func(n int) string { return "a." + strings.Repeat("」", n/3) },
	"digits after stop":  func(n int) string { return "a." + strings.Repeat(" ", 31) + strings.Repeat("1 ", n/2) },
	"stops":              func(n int) string { return strings.Repeat(".", n) },
	"initials":           func(n int) string { return strings.Repeat("A. ", n/3) },
	"items":              func(n int) string { return strings.Repeat("1. ", n/3) },
	"one-word sentences": func(n int) string { return strings.Repeat("Yes! ", n/5) },
	"line breaks":        func(n int) string { return "a" + strings.Repeat("\n", n) + "b" },
	"short lines":        func(n int) string { return strings.Repeat("a\n", n/2) },
	"marks":              func(n int) string { return "a" + strings.Repeat("\u0301", n/2) },
	"stop and marks":     func(n int) string { return "a." + strings.Repeat("\u0301", n/2) + " b" },
	"joiners":            func(n int) string { return strings.Repeat("👩\u200d", n/7) },
	"flags":              func(n int) string { return strings.Repeat("🇩", n/4) },
	"apostrophes":        func(n int) string { return strings.Repeat("a'", n/2) },
	"numbers":            func(n int) string { return strings.Repeat("1,", n/2) },
	"NUL":                func(n int) string { return strings.Repeat("\x00", n) },
	"Thai":               func(n int) string { return strings.Repeat("กรุงเทพ", n/21) },
	"Han":                func(n int) string { return strings.Repeat("天下大勢", n/12) },
	"small and large": func(n int) string {
		return strings.Repeat(strings.Repeat("Yes! ", 40)+strings.Repeat("word ", 180)+"end. ", n/1100)
	},
}

// prose of about n bytes: sentences of 5 to 40 words in paragraphs of 5.
func prose(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "The %dth sentence of Mr. Smith", i)
		for j := range 5 + i*7%36 {
			b.WriteString([]string{" of", " the", " government", " people", ", and", " 1,250", " commerce"}[(i+j)%7])
		}
		b.WriteString(".")
		b.WriteString([]string{" ", " ", "\n", " ", "\n\n"}[i%5])
	}
	return b.String()
}

func TestHostileTextsTakeLinearTime(t *testing.T) {
	const size = 256 << 10
	o := Options{Tokens: 200, Overlap: 100, MaxPieces: 1 << 20}
	measure := func(text string) (time.Duration, []Piece) {
		begin := time.Now()
		pieces := mustSplit(t, o, text, nil)
		return time.Since(begin), pieces
	}
	// Measured beside it, so that the load of the machine and the race detector tell on both. What is linear takes up to
	// ten times as long as prose, what is quadratic thousands of times.
	var limit time.Duration
	for range 5 {
		took, _ := measure(prose(size))
		limit = max(limit, 300*took)
	}
	for name, text := range hostile {
		s := text(size)
		took, pieces := measure(s)
		if took > limit {
			t.Errorf("%s: %v, prose at most %v", name, took, limit/300)
		}
		check(t, o, s, pieces)
	}
}

func BenchmarkSplitProse(b *testing.B) {
	benchmark(b, prose(1<<20))
}

func BenchmarkSplitHostile(b *testing.B) {
	for name, text := range hostile {
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) { benchmark(b, text(1<<18)) })
	}
}

func benchmark(b *testing.B, text string) {
	s, err := New(Options{Tokens: DefaultTokens, Overlap: DefaultOverlap, MaxPieces: 1 << 20})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	pieces := 0
	for b.Loop() {
		p, err := s.Split(context.Background(), text, nil)
		if err != nil {
			b.Fatal(err)
		}
		pieces += len(p)
	}
	b.ReportMetric(float64(pieces)/b.Elapsed().Seconds(), "pieces/s")
}
