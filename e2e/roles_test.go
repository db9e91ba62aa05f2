package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"testing"
	"time"
)

// The roles run as separate processes, each is killed in turn while documents are put, changed and deleted; in the end
// the store is what a map says.
func TestEachRoleKilledInTurn(t *testing.T) {
	p := newPods(t, "WAYMARK_DELIVERY_REMOVAL_DELAY=6s", "WAYMARK_DELIVERY_VIEW_LAG=5s")
	p.startBroker()
	p.run("api", "api")
	running := map[string]*process{}
	for _, role := range workers {
		running[role] = p.run(role, role)
	}
	p.api.waitReady()

	docs := articles(t, 30)
	model := map[string]string{}
	last := map[string]string{}
	change := func(n int) {
		d := docs[rand.IntN(len(docs))]
		d.MessageID = fmt.Sprintf("change-%d", n)
		if model[d.ID] != "" && rand.IntN(4) == 0 {
			p.api.insist(http.StatusAccepted, http.MethodDelete, "/v1/documents/"+url.PathEscape(d.ID), http.Header{"Idempotency-Key": {d.MessageID}}, nil)
			delete(model, d.ID)
		} else {
			d.Text = fmt.Sprintf("Change %d. %s", n, d.Text[:500+rand.IntN(len(d.Text)-500)])
			d.Text = string([]rune(d.Text))
			p.api.ingest(d)
			model[d.ID] = d.Text
		}
		last[d.ID] = d.MessageID
	}
	n := 0
	for _, role := range workers {
		for range 15 {
			change(n)
			n++
		}
		running[role].restart()
		for range 10 {
			change(n)
			n++
		}
		pause(time.Second)
	}
	for id, messageID := range last {
		want := "indexed"
		if model[id] == "" {
			want = "deleted"
		}
		if s := p.api.final(messageID, id); s.Status != want {
			t.Errorf("%s %s is %s, want %s (%+v)", id, messageID, s.Status, want, s.Error)
		}
	}
	total := 0
	for id, text := range model {
		eventually(t, id+" to be served as the model says", func() error { return checkServed(id, text, p.api.served(id)) })
		total += len(p.api.served(id))
	}
	for id := range last {
		if model[id] == "" && len(p.api.served(id)) > 0 {
			t.Errorf("%s was deleted and is served", id)
		}
	}
	eventually(t, "the store to hold exactly what is served", func() error { return p.stored(total) })
}
