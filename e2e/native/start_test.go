package native

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A process does not start on topics on which its promise would not hold, and says which, why, and what to do.
func TestStartChecksTheTopics(t *testing.T) {
	needNative(t)
	c := needNativeBrokers(t)
	absent := newPods(t, "absent")
	deleteTopic(t, "absent.vectors")
	grown := newPods(t, "grown")
	addPartitions(t, "grown.chunks", 9)
	weak := newPods(t, "weak")
	alter(t, []string{"weak-indexer-table"}, map[string]string{"min.insync.replicas": "1"})
	single := newPods(t, "single", "WAYMARK_KAFKA_REPLICATION=1")
	single.env = append(single.env, "WAYMARK_KAFKA_REPLICATION=3")
	stranger := newPods(t, "stranger")
	stranger.env = append(stranger.env, login(c, "stranger", users["stranger"])...)
	var starting sync.WaitGroup
	for _, w := range []struct {
		p     *pods
		words []string
	}{
		{absent, []string{"absent.vectors", "missing", "topics apply"}},
		{grown, []string{"grown.chunks", "has 9 partitions, planned 4"}},
		{weak, []string{"weak-indexer-table", `min.insync.replicas is "1", planned "2"`}},
		{single, []string{"single.documents", "has 1 replication, planned 3"}},
		{stranger, []string{"does not allow this user", "Describe on topic stranger.documents"}},
	} {
		starting.Go(func() { w.p.refusesToStart(w.words...) })
	}
	starting.Wait()
	// One replica is what was asked for: it runs, and says what that means.
	single.env = append(single.env, "WAYMARK_KAFKA_REPLICATION=1")
	single.run("api", "api")
	single.waitReady()
	log, err := os.ReadFile(filepath.Join(single.dir, "api.log"))
	if err != nil || !strings.Contains(string(log), "every record is on one broker only") {
		t.Errorf("it does not say that there is one replica only: %v\n%s", err, log)
	}
}

// refusesToStart: a process ends by itself and says why.
func (p *pods) refusesToStart(words ...string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, suite.binary, "run", "chunker", "--data-dir", filepath.Join(p.dir, "refused"))
	cmd.Env = append(os.Environ(), p.env...)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		p.t.Errorf("%s: it ended with %v", p.name, err)
	}
	last := lastLines(strings.TrimSpace(string(out)), 1)
	for _, w := range words {
		if !strings.Contains(strings.ToLower(last), strings.ToLower(w)) {
			p.t.Errorf("%s: %q is not said:\n%s", p.name, w, out)
		}
	}
	p.t.Logf("after %s: %s", time.Since(began).Round(10*time.Millisecond), last)
}

func deleteTopic(t *testing.T, name string) {
	t.Helper()
	req := kmsg.NewDeleteTopicsRequest()
	topic := kmsg.NewDeleteTopicsRequestTopic()
	topic.Topic = kmsg.StringPtr(name)
	req.TopicNames, req.Topics, req.TimeoutMillis = []string{name}, append(req.Topics, topic), 10_000
	resp, err := req.RequestWith(t.Context(), kafkaClient(t))
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		t.Fatalf("deleting %s: %v", name, err)
	}
}

func addPartitions(t *testing.T, name string, count int32) {
	t.Helper()
	req := kmsg.NewCreatePartitionsRequest()
	topic := kmsg.NewCreatePartitionsRequestTopic()
	topic.Topic, topic.Count = name, count
	req.Topics, req.TimeoutMillis = append(req.Topics, topic), 10_000
	resp, err := req.RequestWith(t.Context(), kafkaClient(t))
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		t.Fatalf("adding partitions to %s: %v", name, err)
	}
}
