package api_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/api/apitest"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
)

var scan = rag.Failure{Stage: "chunker", Class: rag.ClassMessage, Reason: rag.ReasonNoText, Message: "the document is a scan"}

func TestADeadLetterTellsWhatDied(t *testing.T) {
	world := apitest.NewWorld()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	id := world.AddDead("scans/a.pdf", 17, at, scan, []byte("%PDF"))
	s := start(t, api.Config{}, world)
	var l api.DeadLetter
	s.get("/v1/dead-letters/" + id).wants(http.StatusOK).decode(&l)
	if id != "waymark.documents@0-0-17" || l.ID != id || l.DocumentID != "scans/a.pdf" || l.Reason != "no_text" || l.Error != scan.Message ||
		l.Stage != "chunker" || l.Class != "message" || l.Attempts != 1 || l.Topic != "waymark.documents" || l.Offset != 17 ||
		l.State != rag.LetterWaiting || !l.FirstFailedAt.Equal(at) || !l.LastFailedAt.Equal(at) {
		t.Errorf("letter %+v", l)
	}
	blames(t, s.get("/v1/dead-letters/none").problem(404, "not-found"), "path", "id")
}

func TestThePayloadIsByteForByteAndNeverShown(t *testing.T) {
	world := apitest.NewWorld()
	content := "<script>alert(1)</script>\x00\xff"
	id := world.AddDead("a", 1, time.Unix(1, 0), scan, []byte(content))
	deletion := world.AddDead("b", 2, time.Unix(1, 0), scan, nil)
	lost := world.AddDead("c", 3, time.Unix(1, 0), scan, nil)
	row := *mustLetter(t, world, lost)
	row.Lost = "it was compacted away"
	world.Letters.Put(&row)
	s := start(t, api.Config{}, world)
	a := s.get("/v1/dead-letters/" + id + "/payload").wants(http.StatusOK)
	if string(a.body) != content {
		t.Errorf("payload %q", a.body)
	}
	if a.header.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(a.header.Get("Content-Disposition"), "attachment") ||
		a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get("Original-Content-Type") != "application/pdf" {
		t.Errorf("headers %v", a.header)
	}
	if a := s.get("/v1/dead-letters/" + deletion + "/payload").wants(http.StatusOK); a.header.Get("Original-Null") != "true" || len(a.body) != 0 {
		t.Errorf("a deletion: %q %v", a.body, a.header)
	}
	s.get("/v1/dead-letters/"+lost+"/payload").problem(410, "payload-lost")
	s.send(http.MethodPost, "/v1/dead-letters/"+lost+"/replay", nil).problem(410, "payload-lost")
	s.get("/v1/dead-letters/none/payload").problem(404, "not-found")
}

func mustLetter(t *testing.T, w *apitest.World, id string) *ledger.LetterRow {
	t.Helper()
	row, err := w.Letters.Get(t.Context(), id)
	if err != nil || row == nil {
		t.Fatalf("letter %s: %v %v", id, row, err)
	}
	return row
}

func TestDeadLettersAreFiltered(t *testing.T) {
	world := apitest.NewWorld()
	world.AddDead("a", 1, time.Unix(10, 0), scan, nil)
	world.AddDead("b", 2, time.Unix(30, 0), rag.Failure{Stage: "indexer", Reason: rag.ReasonAttemptsSpent}, nil)
	world.AddDead("c", 3, time.Unix(20, 0), scan, nil)
	s := start(t, api.Config{}, world)
	for query, want := range map[string]string{
		"": "b c a", "?reason=no_text": "c a", "?stage=indexer": "b", "?document_id=a": "a", "?state=resolved": "", "?state=waiting&limit=2": "b c",
	} {
		var page api.DeadLetterPage
		s.get("/v1/dead-letters" + query).wants(http.StatusOK).decode(&page)
		var got []string
		for _, l := range page.DeadLetters {
			got = append(got, l.DocumentID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
		if strings.Contains(query, "limit") {
			var next api.DeadLetterPage
			s.get("/v1/dead-letters" + query + "&cursor=" + page.NextCursor).wants(http.StatusOK).decode(&next)
			if len(next.DeadLetters) != 1 || next.DeadLetters[0].DocumentID != "a" || next.NextCursor != "" {
				t.Errorf("the next page: %+v", next)
			}
		}
	}
}

func TestReplayIsACommand(t *testing.T) {
	world := apitest.NewWorld()
	id := world.AddDead("a", 1, time.Unix(1, 0), scan, []byte("x"))
	clock := &manualClock{at: time.Unix(77, 0)}
	deps := world.Dependencies()
	deps.Now = clock.now
	s := startWith(t, api.Config{}, world, deps)
	s.send(http.MethodPost, "/v1/dead-letters/"+id+"/replay", nil).wants(http.StatusAccepted)
	commands := world.Commander.Commands()
	if len(commands) != 1 || commands[0].Kind != rag.CommandReplay || commands[0].LetterID != id || commands[0].DocumentID != "a" || !commands[0].At.Equal(clock.now()) {
		t.Fatalf("commands %+v", commands)
	}
	// The fake group has taken it up: a second one, and a discard, are refused while it runs.
	blames(t, s.send(http.MethodPost, "/v1/dead-letters/"+id+"/replay", nil).problem(409, "replay-running"), "path", "id")
	s.send(http.MethodDelete, "/v1/dead-letters/"+id, nil).problem(409, "replay-running")
	s.send(http.MethodPost, "/v1/dead-letters/none/replay", nil).problem(404, "not-found")
	s.send(http.MethodDelete, "/v1/dead-letters/none", nil).problem(404, "not-found")
}

func TestLettersThatNobodyCanDecideUpon(t *testing.T) {
	for state, kind := range map[rag.LetterState]string{
		rag.LetterScheduled: "replay-running", rag.LetterSent: "replay-running", rag.LetterReplaying: "replay-running",
		rag.LetterResolved: "letter-closed", rag.LetterSuperseded: "letter-closed", rag.LetterDiscarded: "letter-closed",
	} {
		t.Run(string(state), func(t *testing.T) {
			world := apitest.NewWorld()
			id := world.AddDead("a", 1, time.Unix(1, 0), scan, []byte("x"))
			row := *mustLetter(t, world, id)
			row.State = state
			world.Letters.Put(&row)
			s := start(t, api.Config{}, world)
			s.send(http.MethodPost, "/v1/dead-letters/"+id+"/replay", nil).problem(409, kind)
			s.send(http.MethodDelete, "/v1/dead-letters/"+id, nil).problem(409, kind)
			if n := len(world.Commander.Commands()); n != 0 {
				t.Errorf("%d commands were sent", n)
			}
			var l api.DeadLetter
			s.get("/v1/dead-letters/" + id).wants(http.StatusOK).decode(&l)
			if state == rag.LetterSent && l.State != rag.LetterReplaying || (l.RetryAt != nil) != (state == rag.LetterScheduled) {
				t.Errorf("shown as %+v", l)
			}
		})
	}
}

func TestDiscardKeepsTheReason(t *testing.T) {
	world := apitest.NewWorld()
	id := world.AddDead("a", 1, time.Unix(1, 0), scan, []byte("x"))
	s := start(t, api.Config{}, world)
	s.send(http.MethodDelete, "/v1/dead-letters/"+id+"?why="+strings.Repeat("w", 600), nil).problem(422, "invalid-parameter")
	s.send(http.MethodDelete, "/v1/dead-letters/"+id+"?why=nobody+needs+it", nil).wants(http.StatusAccepted)
	var l api.DeadLetter
	s.get("/v1/dead-letters/" + id).wants(http.StatusOK).decode(&l)
	if l.State != rag.LetterDiscarded || l.DiscardReason != "nobody needs it" {
		t.Errorf("letter %+v", l)
	}
}

func TestReplayByFilter(t *testing.T) {
	world := apitest.NewWorld()
	for i := range int64(1200) {
		f := scan
		if i%3 == 0 {
			f.Reason = rag.ReasonTimeout
		}
		world.AddDead("a", i, time.Unix(i/7, 0), f, []byte("x"))
	}
	lost := *mustLetter(t, world, "waymark.documents@0-0-1")
	lost.Lost = "compacted"
	world.Letters.Put(&lost)
	s := start(t, api.Config{}, world)
	var r api.ReplayResult
	s.postJSON("/v1/dead-letters/replay", `{"reason":"timeout"}`).wants(http.StatusAccepted).decode(&r)
	if r != (api.ReplayResult{Replayed: 400}) {
		t.Errorf("by reason: %+v", r)
	}
	s.postJSON("/v1/dead-letters/replay", `{"all":true}`).wants(http.StatusAccepted).decode(&r)
	if r != (api.ReplayResult{Replayed: 799, Skipped: 1}) {
		t.Errorf("the rest: %+v", r)
	}
	if n := len(world.Commander.Commands()); n != 1199 {
		t.Errorf("%d commands", n)
	}
}

func TestACommandThatIsNotKeptIs503(t *testing.T) {
	world := apitest.NewWorld()
	id := world.AddDead("a", 1, time.Unix(1, 0), scan, []byte("x"))
	world.Commander.Err = errors.New("no acknowledgement")
	s := start(t, api.Config{}, world)
	p := s.send(http.MethodPost, "/v1/dead-letters/"+id+"/replay", nil).problem(503, "unavailable")
	if p.Reason != "commands_unavailable" {
		t.Errorf("reason %q", p.Reason)
	}
	s.postJSON("/v1/dead-letters/replay", `{"all":true}`).problem(503, "unavailable")
	s.send(http.MethodDelete, "/v1/dead-letters/"+id, nil).problem(503, "unavailable")
}
