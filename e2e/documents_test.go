package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"unicode"
)

// article is a document as a client submits it, and as the model remembers it.
type article struct {
	ID        string `json:"id"`
	Text      string `json:"text"`
	Title     string `json:"title,omitempty"`
	MessageID string `json:"message_id,omitempty"`
}

// articles makes n articles of two to six kilobytes out of the example articles.
func articles(t *testing.T, n int) []article {
	t.Helper()
	files, err := filepath.Glob("../examples/articles/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no example articles: %v", err)
	}
	var out []article
	for round := 0; len(out) < n; round++ {
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			from := round * 3000
			if from+1000 > len(b) || len(out) == n {
				continue
			}
			text := strings.ToValidUTF8(string(b[from:min(len(b), from+2000+(len(out)%5)*1000)]), "")
			i := len(out)
			out = append(out, article{ID: fmt.Sprintf("article-%03d", i), Text: text, Title: filepath.Base(f), MessageID: fmt.Sprintf("message-%03d", i)})
		}
	}
	return out
}

func (a api) ingest(d article) {
	a.t.Helper()
	body, err := json.Marshal(map[string]string{"id": d.ID, "text": d.Text})
	if err != nil {
		a.t.Fatal(err)
	}
	a.insist(http.StatusAccepted, http.MethodPost, "/ingest", http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {d.MessageID}}, body)
}

// status is what the API says about a submission.
type status struct {
	Status  string `json:"status"`
	Final   bool   `json:"final"`
	Version int64  `json:"version"`
	Chunks  int    `json:"chunks"`
	Error   *struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
	} `json:"error"`
}

func (a api) final(messageID, documentID string) status {
	a.t.Helper()
	var s status
	eventually(a.t, "a final status of "+messageID, func() error {
		code, b, err := a.try(http.MethodGet, "/v1/messages/"+url.PathEscape(messageID)+"?document_id="+url.QueryEscape(documentID), nil, nil)
		if err != nil || code != http.StatusOK {
			return errors.Join(fmt.Errorf("%d %s", code, b), err)
		}
		s = status{}
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		if !s.Final {
			return fmt.Errorf("it is %s", s.Status)
		}
		return nil
	})
	return s
}

type hit struct {
	DocumentID string `json:"document_id"`
	ChunkID    string `json:"chunk_id"`
	Index      int    `json:"chunk_index"`
	Version    int64  `json:"version"`
	Text       string `json:"text"`
	Start      int    `json:"start"`
	End        int    `json:"end"`
}

// served lists all chunks of a document that readers see, by index.
func (a api) served(id string) []hit {
	a.t.Helper()
	var answer struct {
		Hits []hit `json:"hits"`
	}
	a.get("/v1/search?mode=vector&k=1000&q=anything&document_id="+url.QueryEscape(id), &answer)
	sort.Slice(answer.Hits, func(i, j int) bool { return answer.Hits[i].Index < answer.Hits[j].Index })
	return answer.Hits
}

// checkServed is invariant 2: chunks 0 to n-1 of one version, each its slice of the text, together all but white space.
func checkServed(id, text string, hits []hit) error {
	if len(hits) == 0 {
		return fmt.Errorf("%s: nothing is served", id)
	}
	covered := make([]bool, len(text))
	for i, h := range hits {
		switch {
		case h.DocumentID != id:
			return fmt.Errorf("%s: a chunk of %s", id, h.DocumentID)
		case h.Index != i:
			return fmt.Errorf("%s: chunk %d stands at place %d", id, h.Index, i)
		case h.Version != hits[0].Version:
			return fmt.Errorf("%s: chunks of versions %d and %d", id, hits[0].Version, h.Version)
		case h.Start < 0 || h.End > len(text) || h.Start >= h.End || h.Text != text[h.Start:h.End]:
			return fmt.Errorf("%s: chunk %d is not the slice [%d:%d] of the text", id, i, h.Start, h.End)
		}
		for j := h.Start; j < h.End; j++ {
			covered[j] = true
		}
	}
	for i, r := range text {
		if !covered[i] && !unicode.IsSpace(r) {
			return fmt.Errorf("%s: byte %d (%q) is in no chunk", id, i, r)
		}
	}
	return nil
}
