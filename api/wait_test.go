package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/api/apitest"
	"github.com/waymarkhq/waymark/rag"
)

func TestWaitAnswersWhenAllHaveEnded(t *testing.T) {
	world := apitest.NewWorld()
	rev := rag.Revision{Version: 1}
	world.Messages.Put(apitest.Timeline("a", "m1", rev, time.Unix(1, 0), rag.StatusAccepted, rag.StatusIndexed))
	world.Messages.Put(apitest.Timeline("b", "m2", rev, time.Unix(1, 0), rag.StatusAccepted, rag.StatusChunked))
	s := start(t, api.Config{}, world)
	got := make(chan answer, 1)
	go func() {
		got <- s.postJSON("/v1/messages:wait", `{"messages":[{"message_id":"m1"},{"message_id":"m2","document_id":"b"}],"timeout_seconds":9}`)
	}()
	eventually(t, "it looks again", func() bool { return world.Messages.Looks() > 3 })
	world.Messages.Put(apitest.Timeline("b", "m2", rev, time.Unix(1, 0), rag.StatusAccepted, rag.StatusDead))
	var r api.WaitResult
	receive(t, "the answer", got).wants(http.StatusOK).decode(&r)
	if r.Pending != 0 || len(r.Final) != 2 || r.Final[0].MessageID != "m1" || r.Final[1].Status != "dead" || r.Final[1].DocumentID != "b" {
		t.Errorf("result %+v", r)
	}
}

func TestWaitGivesWhatThereIsWhenTheTimeIsOver(t *testing.T) {
	world := apitest.NewWorld()
	rev := rag.Revision{Version: 1}
	world.Messages.Put(apitest.Timeline("a", "m1", rev, time.Unix(1, 0), rag.StatusAccepted, rag.StatusUnchanged))
	world.Messages.Put(apitest.Timeline("b", "m2", rev, time.Unix(1, 0), rag.StatusAccepted))
	s := start(t, api.Config{}, world)
	for _, timeout := range []string{"0", "0.01"} {
		var r api.WaitResult
		s.postJSON("/v1/messages:wait", `{"messages":[{"message_id":"m2"},{"message_id":"m1"},{"message_id":"m3"}],"timeout_seconds":`+timeout+`}`).
			wants(http.StatusOK).decode(&r)
		if r.Pending != 2 || len(r.Final) != 1 || r.Final[0].MessageID != "m1" {
			t.Errorf("result %+v", r)
		}
		if !maps.Equal(r.Statuses, map[string]int{"unchanged": 1, "accepted": 1, "not_visible": 1}) {
			t.Errorf("statuses %v", r.Statuses)
		}
	}
}

func TestWaitDoesNotLookAgainAtWhatHasEnded(t *testing.T) {
	world := apitest.NewWorld()
	for i := range 50 {
		world.Messages.Put(apitest.Timeline("a", fmt.Sprintf("m%d", i), rag.Revision{Version: 1}, time.Unix(1, 0), rag.StatusIndexed))
	}
	s := start(t, api.Config{}, world)
	var list []string
	for i := range 51 { // one of them never ends
		list = append(list, fmt.Sprintf(`{"message_id":"m%d"}`, i))
	}
	s.postJSON("/v1/messages:wait", `{"messages":[`+strings.Join(list, ",")+`],"timeout_seconds":0.2}`).wants(http.StatusOK)
	if n := world.Messages.Looks(); n < 52 || n > 60 {
		t.Errorf("%d looks at 51 messages, 50 of which had ended", n)
	}
}

func TestWaitOfTenThousand(t *testing.T) {
	world := apitest.NewWorld()
	deps := world.Dependencies()
	deps.Messages = allIndexed{}
	s := startWith(t, api.Config{}, world, deps)
	ask := func(n int) answer {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `{"message_id":"%036d","document_id":"articles/%d"},`, i, i)
		}
		return s.postJSON("/v1/messages:wait", `{"messages":[`+strings.TrimSuffix(b.String(), ",")+`]}`)
	}
	var r api.WaitResult
	ask(10_000).wants(http.StatusOK).decode(&r)
	if len(r.Final) != 10_000 || r.Statuses["indexed"] != 10_000 {
		t.Errorf("%d finals, %v", len(r.Final), r.Statuses)
	}
	p := ask(10_001).problem(422, "invalid-field")
	blames(t, p, "body", "messages")
	limits(t, p, "wait_messages", 10_000)
}

func TestWaitRefuses(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	for body, field := range map[string]string{
		`{}`:              "messages",
		`{"messages":[]}`: "messages",
		`{"messages":[{"message_id":"m"}],"timeout_seconds":31}`:           "timeout_seconds",
		`{"messages":[{"message_id":"m"}],"timeout_seconds":-1}`:           "timeout_seconds",
		`{"messages":[{"message_id":"m"}],"timeout_seconds":"1"}`:          "timeout_seconds",
		`{"messages":[{"message_id":""}]}`:                                 "messages.message_id",
		`{"messages":[{"message_id":"m","document_id":"\u0000"}]}`:         "messages.document_id",
		`{"messages":[{"message_id":"m","document":"d"}]}`:                 "document",
		`{"messages":[{"message_id":"m","message_id":"n"}]}`:               "message_id",
		`{"messages":[{"message_id":"` + strings.Repeat("m", 257) + `"}]}`: "messages.message_id",
		`{"messages":["m"]}`: "messages",
		`{"ids":["m"]}`:      "ids",
	} {
		blames(t, s.postJSON("/v1/messages:wait", body).problem(422, "invalid-field"), "body", field)
	}
}
