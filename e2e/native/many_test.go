package native

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waymarkhq/waymark/e2e/checker"
	"github.com/waymarkhq/waymark/rag/wire"
)

// Ten thousand documents pass while processes of all roles are killed twenty times: nothing is lost, nothing stands twice, and
// what it cost is told.
func TestTenThousandDocuments(t *testing.T) {
	needAll(t)
	needWeaviate(t)
	const documents, together, kills = 10_000, 50, 20
	p := newPods(t, "many")
	roles := append([]string{"api"}, workers...)
	running, monitors := map[string]*process{}, map[string]string{"api": p.apiAt}
	for _, role := range roles {
		if role == "api" {
			running[role] = p.run(role, role)
			continue
		}
		running[role], monitors[role] = p.runMonitored(role, role)
	}
	p.waitReady()
	began := time.Now()
	var accepted atomic.Int64
	var sending sync.WaitGroup
	sending.Go(func() {
		for from := 0; from < documents; from += together {
			p.ingestBatch(from, together)
			accepted.Add(together)
		}
	})
	recognised := 0.0
	for i := range kills {
		eventually(t, "documents to be accepted", func() error {
			if n := accepted.Load(); n < int64((i+1)*documents/(kills+2)) {
				return fmt.Errorf("%d", n)
			}
			return nil
		})
		role := roles[i%len(roles)]
		recognised += p.workerMetric(monitors[role], "waymark_duplicates_total")
		p.restart(running[role])
	}
	sending.Wait()
	took := time.Since(began)
	if err := poll(t.Context(), 10*time.Minute, often, func() error { return p.allIndexed(documents) }); err != nil {
		t.Fatal(err)
	}
	for _, role := range roles {
		recognised += p.workerMetric(monitors[role], "waymark_duplicates_total")
	}
	t.Logf("%d documents accepted in %s, all indexed after %s", documents, took.Round(time.Second), time.Since(began).Round(time.Second))
	r := p.checkLog()
	if r.Submissions != documents || r.Statuses["indexed"] != documents {
		t.Errorf("%d submissions: %v", r.Submissions, r.Statuses)
	}
	chunks, vectors := p.repeated()
	t.Logf("the cost of %d kills: %d document records came twice, %.0f repeats were recognised, %d of %d chunks were cut again, %d of %d were embedded again",
		kills, r.Duplicates, recognised, chunks.again, chunks.distinct, vectors.again, vectors.distinct)
}

// allIndexed is nil when so many documents are indexed and no stage is behind.
func (p *pods) allIndexed(documents int64) error {
	s, err := p.api.Stats(p.t.Context())
	if err != nil {
		return err
	}
	for stage, lag := range s.Lag {
		if lag != 0 {
			return fmt.Errorf("%s is %d behind", stage, lag)
		}
	}
	if s.Documents["indexed"] != documents {
		return fmt.Errorf("%v", s.Documents)
	}
	return nil
}

// ingestBatch submits documents in one request until all are accepted, with the same message ids each time.
func (p *pods) ingestBatch(from, n int) {
	p.t.Helper()
	random := rand.New(rand.NewPCG(uint64(from), 7))
	words := strings.Fields("rivers carry fine sand from the hills to a wide green delta where birds rest in spring and fishermen mend their nets")
	var body bytes.Buffer
	lines := json.NewEncoder(&body)
	for i := from; i < from+n; i++ {
		text := fmt.Sprintf("Document %d.", i)
		for range 60 {
			text += " " + words[random.IntN(len(words))]
		}
		if err := lines.Encode(map[string]string{"id": fmt.Sprintf("many-%d", i), "text": text + ".", "message_id": fmt.Sprintf("m-%d", i)}); err != nil {
			p.t.Error(err)
		}
	}
	err := poll(p.t.Context(), outagePatience, often, func() error {
		ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.api.Base+"/v1/documents:batch", bytes.NewReader(body.Bytes()))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-ndjson")
		res, err := p.sent.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		var answer bytes.Buffer
		if _, err := answer.ReadFrom(res.Body); err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", res.Status, answer.String())
		}
		if got := strings.Count(answer.String(), `"status":202`); got != n {
			return fmt.Errorf("%d of %d were accepted: %.500s", got, n, answer.String())
		}
		return nil
	})
	if err != nil {
		p.t.Errorf("documents %d and following: %v", from, err)
	}
}

// repeats of records that stand for the same chunk.
type repeats struct{ distinct, again int }

// repeated counts the chunks that were sent more than once, and those that were embedded more than once.
func (p *pods) repeated() (chunks, vectors repeats) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*deadline)
	defer cancel()
	log, err := checker.ReadLog(ctx, strings.Join(suite.brokers.Addrs(), ","), []string{p.name + ".chunks", p.name + ".vectors"})
	if err != nil {
		p.t.Fatal(err)
	}
	codecs := wire.NewCodecs(time.Now)
	count := func(records []*kgo.Record, key func([]byte) (string, error)) (n repeats) {
		seen := map[string]bool{}
		var failed error
		for _, r := range records {
			k, err := key(r.Value)
			failed = errors.Join(failed, err)
			if seen[k] {
				n.again++
			}
			seen[k] = true
		}
		if failed != nil {
			p.t.Error(failed)
		}
		n.distinct = len(seen)
		return n
	}
	chunks = count(log[p.name+".chunks"], func(b []byte) (string, error) {
		c, err := codecs.Chunk.Decode(b)
		return fmt.Sprint(c.DocumentID, c.Revision, c.Index), err
	})
	vectors = count(log[p.name+".vectors"], func(b []byte) (string, error) {
		v, err := codecs.Vector.Decode(b)
		return fmt.Sprint(v.DocumentID, v.Revision, v.Index), err
	})
	return chunks, vectors
}
