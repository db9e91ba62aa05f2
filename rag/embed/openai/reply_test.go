package openai

import (
	"fmt"
	"strings"
	"testing"
)

func TestReadReply(t *testing.T) {
	for _, c := range []struct {
		body string
		n    int
		want string // the vectors, or the end of the error
	}{
		{`{"data":[{"index":0,"embedding":[1,-2.5e1]}]}`, 1, "[[1 -25]]"},
		{`{"data":[{"index":1,"embedding":[1]},{"index":0,"embedding":[ 2 , 3 ]}]}`, 2, "[[2 3] [1]]"},
		{`{"data":[{"index":0,"embedding":[1,null]}]}`, 1, "[[1 NaN]]"},
		{`{"data":[{"index":0,"embedding":[NaN,-Infinity,1]},{"index":1,"embedding":[2]}]}`, 2, "[[NaN NaN 1] [2]]"},
		{`{"note":"\"NaN","data":[{"index":0,"embedding":[-NaN,Infinity]}]}`, 1, "[[NaN NaN]]"},
		{`{"data":[{"index":0,"embedding":[1e39,-1e39]}]}`, 1, "[[+Inf -Inf]]"},
		{`{"data":[{"index":0,"embedding":[]}]}`, 1, "[[]]"},
		{`{"data":[{"index":0,"embedding":null}]}`, 1, "[[]]"},
		{`{"data":[{"index":0}]}`, 1, "[[]]"},
		{`{"data":[]}`, 1, "0 vectors for 1 texts"},
		{`{"error":"no"}`, 1, "0 vectors for 1 texts"},
		{`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1]}]}`, 1, "2 vectors for 1 texts"},
		{`{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`, 2, "two vectors with the index 0"},
		{`{"data":[{"index":1,"embedding":[1]}]}`, 1, "a vector with the index 1 for 1 texts"},
		{`{"data":[{"index":-1,"embedding":[1]}]}`, 1, "a vector with the index -1 for 1 texts"},
		{`{"data":[{"embedding":[1]}]}`, 1, "a vector without an index"},
		{`{"data":[{"index":0,"embedding":"AAAA"}]}`, 1, "an embedding that is no array of numbers"},
		{`{"data":[{"index":0,"embedding":[[1]]}]}`, 1, "an embedding that is no array of numbers"},
		{`{"data":[{"index":0,"embedding":["inf"]}]}`, 1, "an embedding that is no array of numbers"},
		{`<html>`, 1, "invalid character '<' looking for beginning of value"},
		{``, 1, "unexpected end of JSON input"},
	} {
		vectors, err := readReply([]byte(c.body), c.n)
		got := fmt.Sprint(vectors)
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != c.want || err != nil && !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.body, got, c.want)
		}
	}
}

func FuzzReadReply(f *testing.F) {
	f.Add([]byte(`{"data":[{"index":1,"embedding":[1,2]},{"index":0,"embedding":[3e5,null]}]}`), 2)
	f.Add([]byte(`{"data":[{"index":0,"embedding":[NaN,-Infinity]}],"s":"a\"NaN"}`), 1)
	f.Fuzz(func(t *testing.T, body []byte, n int) {
		n &= 7
		vectors, err := readReply(body, n)
		if err != nil {
			return
		}
		if len(vectors) != n {
			t.Fatalf("%d vectors for %d texts", len(vectors), n)
		}
		elements := 0
		for _, v := range vectors {
			elements += len(v)
		}
		if elements > len(body) {
			t.Fatalf("%d numbers from %d bytes", elements, len(body))
		}
	})
}

func TestServiceWords(t *testing.T) {
	long := strings.Repeat("ы", maxMessage)
	for body, want := range map[string]string{
		`{"error":{"message":"too long"}}`:      "too long",
		`{"error":"too long","type":"x"}`:       "too long",
		`{"detail":"too long"}`:                 "too long",
		`{"message":"too long"}`:                "too long",
		`{"detail":[{"msg":"too long"}]}`:       `{"detail":[{"msg":"too long"}]}`,
		"plain\n\ttext \x1b[31m\xff":            "plain text [31m?",
		"":                                      "(nothing said)",
		`{"error":{"message":"the key is k1"}}`: "the key is [key]",
		long:                                    strings.Repeat("ы", maxMessage/2) + "…",
	} {
		if got := redact(message([]byte(body)), "k1"); got != want {
			t.Errorf("%q: %q, want %q", body, got, want)
		}
	}
}

func TestBatchLimit(t *testing.T) {
	l := newBatchLimit(64)
	l.refused(1)
	if l.size() != 1 {
		t.Fatalf("size %d after 1 was too many", l.size())
	}
	for want := 2; want <= 64; want *= 2 {
		for range growAfter {
			l.accepted(l.size())
		}
		if l.size() != want {
			t.Fatalf("size %d, want %d", l.size(), want)
		}
	}
	for range 2 * growAfter {
		l.accepted(l.size())
	}
	if l.size() != 64 {
		t.Fatalf("size %d above the configured one", l.size())
	}
	l.refused(64)
	for range 2 * growAfter {
		l.accepted(l.size() - 1) // not full: shows nothing
	}
	if l.size() != 32 {
		t.Fatalf("size %d, want 32", l.size())
	}
}
