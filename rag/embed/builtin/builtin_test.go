package builtin_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/waymarkhq/waymark/rag/embed"
	"github.com/waymarkhq/waymark/rag/embed/builtin"
)

// vectors embeds texts and fails the test where one has no vector.
func vectors(t testing.TB, m *builtin.Model, texts ...string) [][]float32 {
	t.Helper()
	results, err := m.Embed(context.Background(), texts)
	if err != nil {
		t.Fatal(err)
	}
	vs := make([][]float32, len(results))
	for i, r := range results {
		if r.Err != nil {
			t.Fatalf("text %d: %v", i, r.Err)
		}
		vs[i] = r.Vector
	}
	return vs
}

func cosine(a, b []float32) float64 {
	var s float64
	for i := range a {
		s += float64(a[i]) * float64(b[i])
	}
	return s // both have unit length
}

// TestVectorsOfTheTraining: testdata/vectors.jsonl holds texts with the vectors that the program which made the model
// gives them; all zero means a text without words.
func TestVectorsOfTheTraining(t *testing.T) {
	file, err := os.ReadFile("testdata/vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	m, nowhere := builtin.New(), vectors(t, builtin.New(), "")[0]
	lines := bufio.NewScanner(bytes.NewReader(file))
	lines.Buffer(nil, 1<<20)
	texts := 0
	for ; lines.Scan(); texts++ {
		var want struct {
			Text   string
			Vector []float32
		}
		if err := json.Unmarshal(lines.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		if cosine(want.Vector, want.Vector) == 0 {
			want.Vector = nowhere
		}
		for range 2 { // the second time unknown words come from the cache
			equal(t, want.Text, vectors(t, m, want.Text)[0], want.Vector, 2e-5)
		}
	}
	if err := lines.Err(); err != nil || texts < 20 {
		t.Fatalf("read %d texts: %v", texts, err)
	}
}

func equal(t *testing.T, text string, got, want []float32, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%q: %d dimensions, want %d", text, len(got), len(want))
	}
	for i := range got {
		if math.Abs(float64(got[i]-want[i])) > tolerance {
			t.Fatalf("%q: element %d is %v, want %v", text, i, got[i], want[i])
		}
	}
}

func TestSpellingsOfOneText(t *testing.T) {
	m := builtin.New()
	for _, same := range [][]string{
		{"ежик", "Ёжик", "ЁЖИК", "  ёжик!"},
		{"йод", "и\u0306од", "Йод"},
		{"cafe zurich", "Café Zürich", "CAFE\u0301, ZU\u0308RICH"},
		{"hyphen", "hy\u00adphen"},
		{"2024 год", "2024год"},
	} {
		vs := vectors(t, m, same...)
		for i, v := range vs {
			equal(t, same[i], v, vs[0], 0)
		}
	}
	for _, different := range [][2]string{{"йод", "иод"}, {"bank", "banks"}, {"1", "2"}} {
		if vs := vectors(t, m, different[:]...); cosine(vs[0], vs[1]) > 0.999 {
			t.Errorf("%q and %q have one vector", different[0], different[1])
		}
	}
}

// TestMeaning: a question is nearer to its answer than to another text, in one language and across both.
func TestMeaning(t *testing.T) {
	texts := []string{
		"The central bank lifted its benchmark interest rate by half a percentage point, and mortgages became dearer.",
		"The striker scored twice and the visitors won the cup final after extra time.",
		"Doctors recommend a vaccine against influenza before the winter.",
		"Центральный банк повысил ключевую ставку, и кредиты на жильё подорожали.",
		"Нападающий забил два гола, и гости выиграли финал кубка в дополнительное время.",
		"Врачи советуют сделать прививку от гриппа до зимы.",
	}
	const perLanguage = 3
	m := builtin.New()
	vs := vectors(t, m, texts...)
	for question, want := range map[string]int{
		"Why did loan payments rise?": 0, "Who won the football match?": 1, "How can I protect myself from flu?": 2,
		"Почему выросли платежи по ипотеке?": 0, "Кто победил в футбольном матче?": 1, "Как защититься от гриппа?": 2,
	} {
		q := vectors(t, m, question)[0]
		for _, language := range []int{0, perLanguage} {
			best := language
			for i := language; i < language+perLanguage; i++ {
				if cosine(q, vs[i]) > cosine(q, vs[best]) {
					best = i
				}
			}
			if best != language+want {
				t.Errorf("%q is nearest to %q, want %q", question, texts[best], texts[language+want])
			}
		}
	}
}

func TestTextsWithoutWordsAreNearNothing(t *testing.T) {
	m := builtin.New()
	vs := vectors(t, m, "", "   — … !", "\x00\xff\xfe", "😀🚀", "\u0301\u00ad")
	for i, v := range vs {
		if err := embed.Check(v, builtin.Dimensions); err != nil {
			t.Fatalf("text %d: %v", i, err)
		}
		equal(t, "no words", v, vs[0], 0)
	}
	for _, text := range []string{"the", "bank", "банк", "и", "a", "2024", "The central bank lifted its rate.", "кредиты подорожали"} {
		if c := cosine(vs[0], vectors(t, m, text)[0]); math.Abs(c) > 0.3 {
			t.Errorf("%q: cosine %.2f with a text without words", text, c)
		}
	}
}

// TestConcurrentCallsGiveTheSameBits: a vector depends on nothing but its text, whatever the cache holds.
func TestConcurrentCallsGiveTheSameBits(t *testing.T) {
	texts := make([]string, 64)
	for i := range texts {
		texts[i] = fmt.Sprintf("микросервис%d zxqv%dish и kubernetizable %d", i%7, i%5, i)
	}
	want := vectors(t, builtin.New(), texts...)
	m := builtin.New()
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for range cap(errs) {
		wg.Go(func() {
			results, err := m.Embed(context.Background(), texts)
			if err != nil {
				errs <- err
				return
			}
			for i, r := range results {
				for j, x := range r.Vector {
					if math.Float32bits(x) != math.Float32bits(want[i][j]) {
						errs <- fmt.Errorf("text %d: element %d is %v, alone %v", i, j, x, want[i][j])
						return
					}
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := builtin.New().Embed(ctx, []string{"a", "b"})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("Embed with a cancelled context: %v", err)
	}
	if err := builtin.New().Canary(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("Canary with a cancelled context: %v", err)
	}
}

// FuzzEmbed: every text has a unit vector of its own memory, the same one from a fresh model and a used one.
func FuzzEmbed(f *testing.F) {
	for _, s := range []string{"", "a", "The bank lifted its rate.", "и\u0306од", "\xff\xfeabc", strings.Repeat("я", 400), "x86_64 и ARM64", "北京 2008"} {
		f.Add(s)
	}
	used := builtin.New()
	f.Fuzz(func(t *testing.T, text string) {
		a := vectors(t, used, text)[0]
		if err := embed.Check(a, builtin.Dimensions); err != nil {
			t.Fatal(err)
		}
		if n := cosine(a, a); math.Abs(n-1) > 1e-5 {
			t.Fatalf("square of the length is %v", n)
		}
		again := vectors(t, used, text)[0]
		equal(t, text, again, a, 0)
		clear(again)
		if cosine(a, a) == 0 {
			t.Fatal("two results share memory")
		}
	})
}
