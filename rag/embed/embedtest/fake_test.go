package embedtest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag/embed"
	"github.com/waymarkhq/waymark/rag/embed/embedtest"
)

func TestVector(t *testing.T) {
	a, b := embedtest.Vector("one text", 8), embedtest.Vector("another text", 8)
	// The bits are what other processes compare with.
	if got, want := fmt.Sprintf("%.6f", a), "[-0.090879 -0.081924 0.264085 0.496806 0.498451 0.397413 -0.318022 0.401179]"; got != want {
		t.Errorf("Vector = %s, want %s", got, want)
	}
	if fmt.Sprint(a) == fmt.Sprint(b) {
		t.Error("two texts have one vector")
	}
	for _, dims := range []int{1, 2, 256, 1536} {
		v := embedtest.Vector("x", dims)
		if err := embed.Check(v, dims); err != nil {
			t.Error(err)
		}
		var square float64
		for _, x := range v {
			square += float64(x) * float64(x)
		}
		if math.Abs(square-1) > 1e-5 {
			t.Errorf("%d dimensions: the square of the length is %v", dims, square)
		}
	}
}

// ask sends a body and returns status, header and body of the answer.
func ask(t *testing.T, method, url, body string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

func embedding(texts ...string) string {
	b, _ := json.Marshal(map[string]any{"model": embedtest.DefaultModel, "input": texts})
	return string(b)
}

func TestFakeAnswers(t *testing.T) {
	fake, base := embedtest.Serve(t, embedtest.Config{Dimensions: 4})
	status, _, body := ask(t, "POST", base+"/v1/embeddings", embedding("a", "b", "a"))
	var reply struct {
		Data []struct {
			Index     int
			Embedding []float32
		}
	}
	if err := json.Unmarshal([]byte(body), &reply); err != nil || status != http.StatusOK || len(reply.Data) != 3 {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	for i, text := range []string{"a", "b", "a"} {
		if d := reply.Data[i]; d.Index != i || fmt.Sprint(d.Embedding) != fmt.Sprint(embedtest.Vector(text, 4)) {
			t.Errorf("entry %d is %+v", i, d)
		}
	}
	ask(t, "POST", base+"/v1/embeddings", embedding(embed.CanaryTexts()...))
	s := fake.Stats()
	if s.Calls != 2 || s.Texts != 3 || s.Distinct != 2 || s.Canaries != 2 || fmt.Sprint(s.Batches) != "[3 2]" {
		t.Errorf("stats %+v", s)
	}
	if fake.Embedded("a") != 2 || fake.Embedded("b") != 1 || fake.Embedded("c") != 0 {
		t.Error("texts are counted wrong")
	}
}

func TestFakeRefuses(t *testing.T) {
	_, base := embedtest.Serve(t, embedtest.Config{MaxBatch: 2})
	for body, want := range map[string]int{
		embedding("a", "b", "c"):          http.StatusRequestEntityTooLarge,
		embedding("a", ""):                http.StatusBadRequest,
		embedding():                       http.StatusBadRequest,
		`{"model":"other","input":["a"]}`: http.StatusNotFound,
		`{`:                               http.StatusBadRequest,
		`{"model":"fake-embedding","input":["a"],"encoding_format":"base64"}`: http.StatusBadRequest,
	} {
		if got, _, answer := ask(t, "POST", base+"/v1/embeddings", body); got != want {
			t.Errorf("%s: %d %s, want %d", body, got, answer, want)
		}
	}
	_, keyed := embedtest.Serve(t, embedtest.Config{APIKey: "secret"})
	if got, _, _ := ask(t, "POST", keyed+"/v1/embeddings", embedding("a")); got != http.StatusUnauthorized {
		t.Errorf("without a key: %d", got)
	}
}

// TestControlFromAnotherProcess drives faults as an end-to-end test does.
func TestControlFromAnotherProcess(t *testing.T) {
	_, base := embedtest.Serve(t, embedtest.Config{Dimensions: 4})
	put := func(fault embedtest.Fault) {
		b, err := json.Marshal(fault)
		if err != nil {
			t.Fatal(err)
		}
		if status, _, body := ask(t, "POST", base+"/control/faults", string(b)); status != http.StatusNoContent {
			t.Fatalf("%s: %d %s", b, status, body)
		}
	}
	put(embedtest.Fault{Kind: embedtest.FaultStatus, Status: 429, RetryAfter: "7", Times: 1, Match: "poison"})
	put(embedtest.Fault{Kind: embedtest.FaultNaN, MinTexts: 2})

	if status, _, body := ask(t, "POST", base+"/v1/embeddings", embedding("good")); status != 200 || strings.Contains(body, "NaN") {
		t.Errorf("a call that no fault concerns: %d %s", status, body)
	}
	if status, header, _ := ask(t, "POST", base+"/v1/embeddings", embedding("good", "a poison text")); status != 429 || header.Get("Retry-After") != "7" {
		t.Errorf("the first fault: %d, Retry-After %q", status, header.Get("Retry-After"))
	}
	if status, _, body := ask(t, "POST", base+"/v1/embeddings", embedding("good", "a poison text")); status != 200 || !strings.Contains(body, "[NaN,") {
		t.Errorf("the second fault: %d %s", status, body)
	}
	var stats embedtest.Stats
	_, _, body := ask(t, "GET", base+"/control/stats", "")
	if err := json.NewDecoder(bytes.NewReader([]byte(body))).Decode(&stats); err != nil {
		t.Fatal(err)
	}
	if stats.Faults[embedtest.FaultStatus] != 1 || stats.Faults[embedtest.FaultNaN] != 1 || stats.Calls != 3 {
		t.Errorf("stats %+v", stats)
	}
	if _, _, body := ask(t, "GET", base+"/control/embedded?text="+url.QueryEscape("a poison text"), ""); body != "{\"embedded\":1}\n" {
		t.Errorf("embedded %s", body)
	}
	if status, _, _ := ask(t, "DELETE", base+"/control/faults", ""); status != http.StatusNoContent {
		t.Errorf("clear: %d", status)
	}
	if _, _, body := ask(t, "POST", base+"/v1/embeddings", embedding("good", "text")); strings.Contains(body, "NaN") {
		t.Error("the fault is still there")
	}
	for _, wrong := range []string{`{"kind":"nonsense"}`, `{"kind":"status"}`, `{"kind":"delay"}`, `{"kind":"nan","times":-1}`, `{"knid":"nan"}`, `{`} {
		if status, _, _ := ask(t, "POST", base+"/control/faults", wrong); status != http.StatusBadRequest {
			t.Errorf("%s is taken: %d", wrong, status)
		}
	}
}

func TestClearLetsHangingCallsGo(t *testing.T) {
	fake, base := embedtest.Serve(t, embedtest.Config{})
	if err := fake.Inject(embedtest.Fault{Kind: embedtest.FaultHang}); err != nil {
		t.Fatal(err)
	}
	answered := make(chan int, 1)
	go func() {
		resp, err := http.Post(base+"/v1/embeddings", "application/json", strings.NewReader(embedding("a")))
		if err != nil {
			answered <- 0
			return
		}
		resp.Body.Close()
		answered <- resp.StatusCode
	}()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for fake.Stats().Faults[embedtest.FaultHang] == 0 {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the call never came")
		}
	}
	fake.Clear()
	select {
	case status := <-answered:
		if status != http.StatusOK {
			t.Fatalf("the call ended with %d", status)
		}
	case <-deadline:
		t.Fatal("the call still hangs")
	}
}
