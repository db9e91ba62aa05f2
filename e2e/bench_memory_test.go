package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// largeVariable is the size of BenchmarkUpLargeText's document in megabytes; 20 unless set.
const largeVariable = "E2E_LARGE_MB"

// largeText is a text of so many bytes whose paragraphs differ: the articles again and again, each paragraph with its number.
func largeText(b *testing.B, size int) []byte {
	b.Helper()
	files, err := filepath.Glob("../examples/articles/*.txt")
	if err != nil || len(files) == 0 {
		b.Fatalf("no articles: %v", err)
	}
	var paragraphs []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		paragraphs = append(paragraphs, strings.Split(string(text), "\n\n")...)
	}
	out := make([]byte, 0, size+64<<10)
	for i := 0; len(out) < size; i++ {
		out = fmt.Appendf(out, "%d. %s\n\n", i, paragraphs[i%len(paragraphs)])
	}
	return out[:size]
}

// BenchmarkUpLargeText reads one large text with `up`, with and without a soft limit of the heap, and reports the largest
// resident memory of the process, what its collector took of the processor, and the rate.
func BenchmarkUpLargeText(b *testing.B) {
	megabytes := 20
	if text := os.Getenv(largeVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			b.Fatal(err)
		}
		megabytes = n
	}
	content := largeText(b, megabytes<<20)
	for _, limit := range []string{"off", "200MiB"} {
		b.Run("GOMEMLIMIT="+limit, func(b *testing.B) {
			for b.Loop() {
				at := freeAddress(b)
				up := start(b, "up", []string{"GOMEMLIMIT=" + limit}, "up", "--data-dir", b.TempDir(), "--listen", at)
				a := api{b, "http://" + at}
				a.waitReady()
				began := time.Now()
				a.insist(http.StatusAccepted, http.MethodPut, "/v1/documents/large", http.Header{"Content-Type": {"text/plain"}, "Idempotency-Key": {"large-1"}}, content)
				var m status
				for patience := began.Add(20 * time.Minute); !m.Final; pause(time.Second) {
					if time.Now().After(patience) {
						b.Fatalf("it is %s after %s", m.Status, time.Since(began))
					}
					code, body, err := a.try(http.MethodGet, "/v1/messages/large-1?document_id=large", nil, nil)
					if err != nil || code != http.StatusOK {
						continue
					}
					if err := json.Unmarshal(body, &m); err != nil {
						b.Fatal(err)
					}
				}
				if m.Status != "indexed" {
					b.Fatalf("it is %s: %+v", m.Status, m.Error)
				}
				b.ReportMetric(memoryMB(b, up.cmd.Process.Pid, "VmHWM"), "peak-RSS-MB")
				b.ReportMetric(float64(m.Chunks)/time.Since(began).Seconds(), "chunks/s")
				b.ReportMetric(a.metric("process_cpu_seconds_total"), "CPU-s")
				up.kill(15)
			}
		})
	}
}
