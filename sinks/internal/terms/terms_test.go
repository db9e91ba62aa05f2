package terms

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestFold(t *testing.T) {
	for in, want := range map[string]string{
		"Hello":           "hello",
		"ﬁnance":          "finance",
		"co\u00adoperate": "cooperate",
		"Crème Brûlée":    "creme brulee",
		"Straße":          "strasse",
		"ΣΊΣΥΦΟΣ":         "σισυφοσ",
		"Ёлка, йод":       "елка, йод",
		"ｶﾞｲﾄﾞ":           "ガイド",
		"a\u200db":        "ab",
		"e\u0301":         "e",
	} {
		if got := Fold(in); got != want {
			t.Errorf("Fold(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestIndex(t *testing.T) {
	for in, want := range map[string]string{
		"The quick, brown Fox!": "the quick brown fox",
		"see example.com":       "see example.com example com",
		"don't":                 "dont don t",
		"snake_case":            "snake_case snake case",
		"東京都":                   "東 京 東京 都 京都",
		"データ":                   "デ ー デー タ ータ",
		"GPU搭載":                 "gpu 搭 載 搭載",
		"한국어 책":                 "한 국 한국 어 국어 책",
		"… — !":                 "",
		"I ♥ Go":                "i ♥ go",
	} {
		if got := Index(in); got != want {
			t.Errorf("Index(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestQuery(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"What is the capital of France?", []string{"capital", "france"}},
		{"the who", []string{"the", "who"}},
		{"Какая столица у Франции", []string{"столица", "франции"}},
		{"京", []string{"京"}},
		{"東京", []string{"東京"}},
		{"don't panic panic", []string{"panic"}},
		{"", nil},
		{"?!", nil},
	} {
		if got := Query(c.in); !slices.Equal(got, c.want) {
			t.Errorf("Query(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

// A query made of any stretch of a text in a script without spaces is found in that text.
func TestQueryTermsAreIndexed(t *testing.T) {
	texts := []string{
		"โรงเรียนของเราอยู่ใกล้แม่น้ำ", "国家图书馆位于北京市海淀区", "吾輩は猫である。名前はまだ無い。データベース",
		"ภาษาไทยไม่มีช่องว่าง", "ភាសាខ្មែរ", "The ﬁrst co\u00adoperative café wasn’t open", "Ёлка и йод", "한국어를 배웁니다",
	}
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.SampledFrom(texts).Draw(rt, "text")
		indexed := strings.Fields(Index(text))
		for _, q := range Query(text) {
			if !slices.Contains(indexed, q) {
				rt.Fatalf("term %q of %q is not among its indexed terms %q", q, text, indexed)
			}
		}
		runes := []rune(text)
		i := rapid.IntRange(0, len(runes)-1).Draw(rt, "i")
		j := rapid.IntRange(i+1, len(runes)).Draw(rt, "j")
		if !unspaced(runes[i]) {
			return
		}
		found := false
		q := Query(string(runes[i:j]))
		for _, term := range q {
			found = found || slices.Contains(indexed, term)
		}
		if len(q) > 0 && !found {
			rt.Fatalf("%q asks for %q, none of it indexed in %q", string(runes[i:j]), q, indexed)
		}
	})
}

func FuzzTerms(f *testing.F) {
	for _, s := range []string{"Hello, world", "東京都", "ﬁ\u00ad", "\xff\xfe", "e\u0301\u0301", "don't '", "1,000.5;3", "\x00", "👩‍👩‍👧", strings.Repeat("x", 300)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		index := Index(s)
		if !utf8.ValidString(index) {
			t.Fatalf("index of %q is not UTF-8: %q", s, index)
		}
		if strings.ContainsRune(index, 0) {
			t.Fatalf("index of %q holds a NUL", s)
		}
		for term := range strings.SplitSeq(index, " ") {
			if len(term) > maxTermBytes*2 {
				t.Fatalf("term of %d bytes", len(term))
			}
		}
		indexed := make(map[string]bool)
		for _, term := range strings.Fields(index) {
			indexed[term] = true
		}
		q := Query(s)
		if len(q) > maxQueryTerms {
			t.Fatalf("%d query terms", len(q))
		}
		for _, term := range q {
			if !indexed[term] {
				t.Fatalf("query term %q of %q is not indexed: %q", term, s, index)
			}
		}
	})
}
