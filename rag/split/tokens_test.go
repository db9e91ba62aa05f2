package split

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestTheEstimateIsNearTheCountsOfRealVocabularies(t *testing.T) {
	b, err := os.ReadFile("testdata/tokens.json")
	if err != nil {
		t.Fatal(err)
	}
	var samples []struct {
		Name string `json:"name"`
		Text string `json:"text"`
		O200 int    `json:"o200k"`
	}
	if err := json.Unmarshal(b, &samples); err != nil {
		t.Fatal(err)
	}
	if len(samples) < 15 {
		t.Fatalf("%d samples", len(samples))
	}
	for _, s := range samples {
		low, high := 0.66, 1.66
		if strings.HasPrefix(s.Name, "English") {
			low, high = 0.9, 1.1
		}
		if ratio := float64(EstimateTokens(s.Text)) / float64(s.O200); ratio < low || ratio > high {
			t.Errorf("%s: %d tokens, %.2f of the %d that there are", s.Name, EstimateTokens(s.Text), ratio, s.O200)
		}
	}
}

func TestEstimates(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, " ": 0, "word": 1, "two words": 2, "camelCase": 2, "HTTP": 1, "word, word.": 4, "1234567": 3, "漢字かな": 4, "été": 1,
		strings.Repeat(" ", 80): 10, strings.Repeat("x", 60): 25, "-----": 3, "🙂": 2, "e\u0301te": 1,
	} {
		if got := EstimateTokens(text); got != want {
			t.Errorf("%q: %d tokens, not %d", text, got, want)
		}
	}
}
