package pipeline_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/wire"
)

// BenchmarkSpeeches sends the example speeches (or those of the folder in WAYMARK_SPEECHES) through the whole pipeline on
// the embedded default, and reports chunks per second from the first record to the last final status.
func BenchmarkSpeeches(b *testing.B) {
	dir := os.Getenv("WAYMARK_SPEECHES")
	if dir == "" {
		dir = "../examples/articles"
	}
	files, err := filepath.Glob(dir + "/*.txt")
	if err != nil || len(files) == 0 {
		b.Fatalf("no speeches in %s: %v", dir, err)
	}
	for b.Loop() {
		b.StopTimer()
		w := start(b)
		var records []kafka.Record
		for _, f := range files {
			text, err := os.ReadFile(f)
			check(b, err)
			key, value, headers := wire.DocumentRecord(rag.Document{ID: filepath.Base(f), MessageID: "m", Content: text, ContentType: "text/plain"}, true)
			r := kafka.Record{Topic: w.topics.Documents, Key: key, Value: value}
			for _, h := range headers {
				r.Headers = append(r.Headers, kafka.Header(h))
			}
			records = append(records, r)
		}
		w.put(rag.Document{ID: "warm", MessageID: "m", Content: []byte("Ready.")})
		w.waitFinal("warm/m", rag.StatusIndexed)
		b.StartTimer()
		began := time.Now()
		kafkatest.Produce(b, w.cfg, records...)
		kafkatest.Wait(b, "all to be final", func() bool { return len(w.finals()) == len(files)+1 })
		took := time.Since(began)
		b.StopTimer()
		chunks, err := w.store.Count(b.Context())
		check(b, err)
		b.ReportMetric(float64(chunks)/took.Seconds(), "chunks/s")
		b.ReportMetric(float64(len(files))/took.Seconds(), "documents/s")
		w.stop()
		b.StartTimer()
	}
}
