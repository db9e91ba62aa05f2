package native

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// While documents come and change, chunks vanish from Weaviate behind the pipeline's back and others appear twice. A
// comparison finds them and mends them beside the traffic, and takes nothing that is in work for a difference.
func TestVerifyRepairsWhileTrafficFlows(t *testing.T) {
	needNative(t)
	w := needWeaviate(t)
	p := newPods(t, "verified")
	p.run("all", append([]string{"api"}, workers...)...)
	p.waitReady()
	m, all := newModel(), articles(t, 24)
	still, moving := all[:12], all[12:]
	for _, a := range still {
		p.put(m, a)
	}
	p.check(m)

	ctx, stop := context.WithCancel(t.Context())
	var sending sync.WaitGroup
	sending.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			a := moving[i%len(moving)]
			a.messageID += "-" + uuid.NewString()
			a.text += strings.Repeat(" more", i/len(moving)+1)
			p.put(m, a)
			pause(100 * time.Millisecond)
		}
	})
	class := collection("verified")
	chunks, err := w.server().Objects(t.Context(), class)
	if err != nil {
		t.Fatal(err)
	}
	settled := map[string]bool{}
	for _, a := range still {
		settled[a.id] = true
	}
	lost, doubled := 0, 0
	for _, o := range chunks {
		path := "/v1/objects/" + class + "/" + o.ID
		switch {
		case !settled[o.Properties.DocumentID] || lost == 5 && doubled == 3:
		case lost < 5:
			if err := w.server().Call(t.Context(), http.MethodDelete, path, nil, nil); err != nil {
				t.Fatal(err)
			}
			lost++
		default:
			var whole map[string]any
			if err := w.server().Call(t.Context(), http.MethodGet, path+"?include=vector", nil, &whole); err != nil {
				t.Fatal(err)
			}
			copied := map[string]any{"class": class, "id": uuid.NewString(), "properties": whole["properties"], "vector": whole["vector"]}
			if err := w.server().Call(t.Context(), http.MethodPost, "/v1/objects", copied, nil); err != nil {
				t.Fatal(err)
			}
			doubled++
		}
	}
	if lost != 5 || doubled != 3 {
		t.Fatalf("%d chunks were taken away and %d doubled: there are too few", lost, doubled)
	}
	verify := func(args ...string) (string, error) {
		out, err := p.command(append([]string{"verify", "--data-dir", filepath.Join(p.dir, "verify")}, args...)...)
		t.Logf("verify %s: %v\n%s", strings.Join(args, " "), err, out)
		return string(out), err
	}
	if out, err := verify("--repair"); err != nil || !strings.Contains(out, "missing") || !strings.Contains(out, "doubled") {
		t.Errorf("the repair: %v", err)
	}
	stop()
	sending.Wait()
	p.check(m) // which holds the store against what is served, object by object, and searches for each
	if out, err := verify(); err != nil || !strings.Contains(out, "nothing differs") {
		t.Errorf("after the repair: %v", err)
	}
}
