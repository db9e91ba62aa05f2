package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/api/apitest"
	"github.com/waymarkhq/waymark/rag"
)

// failedAt is a world with a dead letter a, b, c … at each second of a minute.
func failedAt(seconds ...int) *apitest.World {
	world := apitest.NewWorld()
	for i, s := range seconds {
		world.AddDead(string(rune('a'+i)), int64(i+1), time.Date(2026, 3, 1, 12, 0, s, 0, time.UTC), scan, []byte("x"))
	}
	return world
}

func TestDeadLettersAreFilteredByTheirLastFailure(t *testing.T) {
	s := start(t, api.Config{}, failedAt(10, 30, 20))
	for query, want := range map[string]string{
		"since=2026-03-01T12:00:20Z":                                        "b c",
		"until=2026-03-01T12:00:20Z":                                        "a",
		"since=2026-03-01T12:00:10Z&until=2026-03-01T12:00:30Z":             "c a",
		"since=2026-03-01T13:00:20%2B01:00&until=2026-03-01T12:00:20.0001Z": "c",
		"since=2026-03-01T12:00:31Z":                                        "",
	} {
		var page api.DeadLetterPage
		s.get("/v1/dead-letters?" + query).wants(http.StatusOK).decode(&page)
		var got []string
		for _, l := range page.DeadLetters {
			got = append(got, l.DocumentID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
	blames(t, s.get("/v1/dead-letters?since=2h").problem(422, "invalid-parameter"), "query", "since")
	blames(t, s.get("/v1/dead-letters?since=2026-03-01T12:00:20Z&until=2026-03-01T12:00:20Z").problem(422, "invalid-parameter"), "query", "until")
}

func TestDiscardByFilterKeepsTheOperatorsWords(t *testing.T) {
	world := failedAt(10, 30, 20, 40)
	running := *mustLetter(t, world, "waymark.documents@0-0-4")
	running.State = rag.LetterReplaying
	world.Letters.Put(&running)
	lost := *mustLetter(t, world, "waymark.documents@0-0-2")
	lost.Lost = "compacted"
	world.Letters.Put(&lost)
	s := start(t, api.Config{}, world)
	var r api.DiscardResult
	s.postJSON("/v1/dead-letters/discard", `{"reason":"no_text","since":"2026-03-01T12:00:20Z","why":"nobody needs „scans“"}`).
		wants(http.StatusAccepted).decode(&r)
	if r != (api.DiscardResult{Discarded: 2}) {
		t.Errorf("result %+v", r)
	}
	for id, want := range map[int]rag.LetterState{1: rag.LetterWaiting, 2: rag.LetterDiscarded, 3: rag.LetterDiscarded, 4: rag.LetterReplaying} {
		row := mustLetter(t, world, fmt.Sprintf("waymark.documents@0-0-%d", id))
		if row.State != want || (row.Reason == "nobody needs „scans“") != (want == rag.LetterDiscarded) {
			t.Errorf("letter %d is %s because of %q", id, row.State, row.Reason)
		}
	}
}

func TestFiltersThatCannotBeUsed(t *testing.T) {
	world := failedAt(10)
	s := start(t, api.Config{}, world)
	for body, field := range map[string]string{
		`{}`:                          "all",
		`{"all":false}`:               "all",
		`{"cursor":"abc"}`:            "all",
		`{"all":true,"cursor":"abc"}`: "cursor",
		`{"since":"2h"}`:              "since",
		`{"until":"2026-03-01"}`:      "until",
		`{"since":7}`:                 "since",
		`{"since":"2026-03-01T12:00:20Z","until":"2026-03-01T12:00:19.99Z"}`: "until",
		`{"all":true,"state":"waiting"}`:                                     "state",
	} {
		for _, call := range []string{"replay", "discard"} {
			blames(t, s.postJSON("/v1/dead-letters/"+call, body).problem(422, "invalid-field"), "body", field)
		}
	}
	blames(t, s.postJSON("/v1/dead-letters/discard", `{"all":true,"why":"`+strings.Repeat("ü", 513)+`"}`).problem(422, "invalid-field"), "body", "why")
	blames(t, s.postJSON("/v1/dead-letters/replay", `{"all":true,"why":"x"}`).problem(422, "invalid-field"), "body", "why")
	if n := len(world.Commander.Commands()); n != 0 {
		t.Errorf("%d commands were sent", n)
	}
	s.postJSON("/v1/dead-letters/discard", `{"all":true,"why":"`+strings.Repeat("ü", 512)+`"}`).wants(http.StatusAccepted)
}

// A letter that dies again while a replay by filter goes on is not met a second time: each failure is replayed once.
func TestReplayByFilterGoesOnWhereItEnded(t *testing.T) {
	world := apitest.NewWorld()
	for i := range int64(api.MaxReplays + 5) {
		world.AddDead("a", i, time.Unix(1+i/7, 0), scan, []byte("x"))
	}
	s := start(t, api.Config{}, world)
	var first, second api.ReplayResult
	s.postJSON("/v1/dead-letters/replay", `{"reason":"no_text"}`).wants(http.StatusAccepted).decode(&first)
	if first.Replayed != api.MaxReplays || !first.More || first.NextCursor == "" {
		t.Fatalf("first %+v", first)
	}
	again := *mustLetter(t, world, "waymark.documents@0-0-10004")
	again.State, again.LastFailed = rag.LetterWaiting, time.Unix(100_000, 0)
	world.Letters.Put(&again)
	s.postJSON("/v1/dead-letters/replay", `{"reason":"no_text","cursor":"`+first.NextCursor+`"}`).wants(http.StatusAccepted).decode(&second)
	if second != (api.ReplayResult{Replayed: 5}) {
		t.Errorf("second %+v", second)
	}
	seen := map[string]int{}
	for _, c := range world.Commander.Commands() {
		seen[c.LetterID]++
	}
	if len(seen) != api.MaxReplays+5 || seen[again.ID] != 1 {
		t.Errorf("%d letters were replayed, that which died again %d times", len(seen), seen[again.ID])
	}
}

func TestGenerationsAreShown(t *testing.T) {
	world := failedAt(10)
	const id = "waymark.documents@0-0-1"
	s := start(t, api.Config{}, world)
	for want, state := range []rag.LetterState{rag.LetterWaiting, rag.LetterReplaying} {
		var l api.DeadLetter
		s.get("/v1/dead-letters/" + id).wants(http.StatusOK).decode(&l)
		if l.Generation != want || l.State != state {
			t.Errorf("generation %d, %s; want %d, %s", l.Generation, l.State, want, state)
		}
		if want == 0 {
			s.send(http.MethodPost, "/v1/dead-letters/"+id+"/replay", nil).wants(http.StatusAccepted)
		}
	}
}

func TestADiscardByFilterThatIsNotKeptIs503(t *testing.T) {
	world := failedAt(10)
	world.Commander.Err = errors.New("no acknowledgement")
	s := start(t, api.Config{}, world)
	s.postJSON("/v1/dead-letters/discard", `{"all":true}`).problem(503, "unavailable")
	world.Letters.Err = errors.New("away")
	s.postJSON("/v1/dead-letters/discard", `{"all":true}`).problem(500, "internal-error")
}
