package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waymarkhq/waymark/e2e/checker"
	"github.com/waymarkhq/waymark/rag/wire"
)

// Row 10: the broker appends and answers with an error. The idempotent producer sends again; no record stands twice.
func TestFaultAppendedButErrorReturned(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 10})
	w.start("api", "api")
	w.start("worker", workers...)
	w.api.waitReady()
	w.watch()
	topics := []string{"waymark.documents", "waymark.chunks", "waymark.vectors", "waymark.progress", "waymark.events",
		"waymark-chunker-table", "waymark-indexer-table", "waymark-tracker-table"}
	var faults []*kfake.FaultHandle
	for _, topic := range topics {
		for _, err := range []*kerr.Error{kerr.NotEnoughReplicasAfterAppend, kerr.RequestTimedOut} {
			faults = append(faults, w.cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: err, Count: 3}))
		}
	}
	for i := range 40 {
		w.put(fmt.Sprintf("doc-%d", i%10), w.text(4))
	}
	for i, f := range faults {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		if err := f.Wait(ctx, 3); err != nil {
			t.Errorf("%s: %d appends were answered with an error: %v", topics[i/2], f.Hits(), err)
		}
		cancel()
	}
	w.over()
	r := w.check()
	if r.Duplicates != 0 {
		t.Errorf("%d document records stand twice", r.Duplicates)
	}
	w.checkNothingTwice()
}

// checkNothingTwice: no chunk, and no vector, stands in the log twice.
func (w *world) checkNothingTwice() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), deadline)
	defer cancel()
	log, err := checker.ReadLog(ctx, w.broker, []string{"waymark.chunks", "waymark.vectors"})
	if err != nil {
		w.t.Fatal(err)
	}
	codecs := wire.NewCodecs(time.Now)
	seen := map[string]int{}
	for _, r := range log["waymark.chunks"] {
		c, err := codecs.Chunk.Decode(r.Value)
		if err != nil {
			w.t.Fatal(err)
		}
		seen[fmt.Sprint("chunk ", c.DocumentID, c.Revision, c.Index)]++
	}
	for _, r := range log["waymark.vectors"] {
		v, err := codecs.Vector.Decode(r.Value)
		if err != nil {
			w.t.Fatal(err)
		}
		seen[fmt.Sprint("vector ", v.DocumentID, v.Revision, v.Index)]++
	}
	if len(seen) == 0 {
		w.t.Error("there are no chunks")
	}
	for what, n := range seen {
		if n != 1 {
			w.t.Errorf("%s stands %d times in the log", what, n)
		}
	}
}

// Row 11: commits are refused and the coordinator moves, while the worker is killed: what was not committed is done
// again, and comes to the same.
func TestFaultCommitsRefused(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 11})
	w.start("api", "api")
	worker := w.start("worker", workers...)
	w.api.waitReady()
	w.watch()
	stop := w.changing(15, 40*time.Millisecond)
	for _, f := range []struct {
		key kmsg.Key
		err *kerr.Error
	}{
		{kmsg.OffsetCommit, kerr.CoordinatorLoadInProgress},
		{kmsg.OffsetCommit, kerr.NotCoordinator},
		{kmsg.OffsetCommit, kerr.UnknownMemberID},
		{kmsg.OffsetCommit, kerr.IllegalGeneration},
		{kmsg.Heartbeat, kerr.NotCoordinator},
	} {
		worker.waitReady()
		h := w.cluster().Fault(kfake.Fault{Keys: []kmsg.Key{f.key}, Err: f.err, Count: -1})
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		if err := h.Wait(ctx, 5); err != nil {
			t.Errorf("%s: %d requests were answered with %s: %v", f.key.Name(), h.Hits(), f.err.Message, err)
		}
		cancel()
		worker.restart()
		h.Remove()
	}
	stop()
	w.over()
	w.check()
}

// Row 21: the topic of the dead letters takes nothing. What made a version die stays uncommitted until its letter stands
// there.
func TestFaultLettersTopicUnavailable(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 21})
	w.start("api", "api")
	worker := w.start("worker", workers...)
	w.api.waitReady()
	w.watch()
	for i := range 5 {
		w.put(fmt.Sprintf("doc-%d", i), w.text(3))
	}
	w.settle()
	letters := w.cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "waymark.dead-letters", Err: kerr.TopicAuthorizationFailed, Count: -1})
	m := w.messageID()
	w.produceAs("poison", m, []byte(`{"text": "no end`))
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if err := letters.Wait(ctx, 2); err != nil {
		t.Fatalf("%d letters were refused: %v", letters.Hits(), err)
	}
	if n := w.lagOf("indexer"); n == 0 {
		t.Error("what made it die is committed, and there is no letter")
	}
	worker.restart() // what is not committed comes again
	letters.Remove()
	w.over()
	w.check()
	if s := w.api.final(m, "poison"); s.Status != "dead" {
		t.Errorf("in the end it is %s", s.Status)
	}
}

// lagOf asks how far a stage is behind.
func (w *world) lagOf(stage string) int64 {
	w.t.Helper()
	return w.pods.stats().Lag[stage]
}

// Row 24: somebody gives the documents topic more partitions. Keys have other homes then: every process refuses to go on,
// and says what to do; nothing is skipped.
func TestFaultPartitionsAdded(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 24})
	gateway := w.start("api", "api")
	worker := w.start("worker", workers...)
	w.api.waitReady()
	for i := range 10 {
		w.put(fmt.Sprintf("doc-%d", i), w.text(3))
	}
	w.check()
	req := kmsg.NewCreatePartitionsRequest()
	topic := kmsg.NewCreatePartitionsRequestTopic()
	topic.Topic, topic.Count = "waymark.documents", 7
	req.Topics, req.TimeoutMillis = append(req.Topics, topic), 10_000
	resp, err := req.RequestWith(t.Context(), logClient(t, w.broker))
	if err != nil || kerr.ErrorForCode(resp.Topics[0].ErrorCode) != nil {
		t.Fatalf("%+v: %v", resp, err)
	}
	w.dead(gateway, "its topic has more partitions")
	w.dead(worker, "its topic has more partitions")
	for _, p := range []*process{gateway, worker} {
		if p.code() == 0 {
			t.Errorf("%s ended as if all were well", p.name)
		}
		refuses(t, p)
	}
	for _, p := range []*process{gateway, worker} { // and does not start again
		p.launch()
		w.dead(p, "its topic has more partitions")
		if p.code() == 0 {
			t.Errorf("%s started, and ended as if all were well", p.name)
		}
		refuses(t, p)
	}
}

// refuses looks for the sentence that says why, and what to do.
func refuses(t *testing.T, p *process) {
	t.Helper()
	b, err := os.ReadFile(p.log.Name())
	if err != nil {
		t.Fatal(err)
	}
	last := string(b[max(0, len(b)-2000):])
	if !strings.Contains(last, "partitions") || !strings.Contains(last, "epoch") {
		t.Errorf("%s does not say why it ended: %s", p.name, last)
	}
}

// Row 28: the offsets of all groups are lost, and every record comes again from the oldest on. All are recognised: no
// status changes, nothing is embedded or paid for again, and the store holds the same.
func TestFaultOffsetsLost(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 28})
	w.start("api", "api")
	worker := w.start("worker", workers...)
	w.api.waitReady()
	w.watch()
	for range 40 {
		w.change(10)
	}
	w.poison()
	w.settle()
	worker.kill(syscall.SIGTERM)
	embedded := func() int { return w.embedder.Stats().Texts - w.embedder.Embedded("anything") }
	before := embedded()
	var groups []string
	for _, role := range workers {
		groups = append(groups, w.prefix+"-"+role)
	}
	req := kmsg.NewDeleteGroupsRequest()
	req.Groups = groups
	// A static member that has ended is still a member until its session is over.
	eventually(t, "the groups to be deleted", func() error {
		for _, shard := range logClient(t, w.broker).RequestSharded(t.Context(), &req) {
			resp, ok := shard.Resp.(*kmsg.DeleteGroupsResponse)
			if !ok {
				return fmt.Errorf("%T: %w", shard.Resp, shard.Err)
			}
			for _, g := range resp.Groups {
				if err := kerr.ErrorForCode(g.ErrorCode); err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
					return fmt.Errorf("%s: %w", g.Group, err)
				}
			}
		}
		return nil
	})
	if lag := w.lagOf("chunker"); lag < 40 {
		t.Fatalf("the offsets are not lost: the chunker is %d behind", lag)
	}
	worker.launch()
	w.over()
	w.check()
	if n := embedded() - before; n != 0 {
		t.Errorf("%d texts were embedded again", n)
	}
}
