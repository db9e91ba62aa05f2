package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waymarkhq/waymark/e2e/kafkalocal"
)

// brokers are the cluster that the tests run on.
type brokers interface {
	fmt.Stringer
	Addrs() []string
	Close()
}

// killable are brokers that tests may do things to. Nodes count from 1.
type killable interface {
	brokers
	Nodes() int
	Kill(node int) error
	Pause(node int) error
	Resume(node int) error
	Stop(node int) error
	// Start starts a node with the data that it has and waits until it is ready.
	Start(ctx context.Context, node int) error
	// Restore lets all nodes run.
	Restore(ctx context.Context) error
}

// startBrokers takes the first that there is: given ones, three native nodes, the embedded broker.
func startBrokers(ctx context.Context) (brokers, error) {
	switch os.Getenv(backendVariable) {
	case onGiven:
		return givenBrokers(strings.Split(os.Getenv(brokersVariable), ",")), nil
	case onEmbedded:
		return startEmbedded(ctx)
	}
	r, err := release(ctx)
	if err != nil {
		return nil, err
	}
	nodes := 3
	if os.Getenv(benchVariable) != "" && os.Getenv(benchNodesVariable) == "1" {
		nodes = 1
	}
	c, err := kafkalocal.New(ctx, kafkalocal.Options{Release: r, Dir: filepath.Join(suite.folder, "kafka"), Nodes: nodes, TLS: true, Users: users, Props: quickRetention})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	return nativeBrokers{c}, c.Start(ctx)
}

// quickRetention makes brokers look every second for what may be deleted; how long something is kept is the topics' matter.
var quickRetention = map[string]string{"log.retention.check.interval.ms": "1000"}

// users of the native brokers.
var users = map[string]string{"admin": "admin-secret", "waymark": "waymark-secret", "stranger": "stranger-secret"}

type givenBrokers []string

func (g givenBrokers) String() string  { return "brokers: given, " + strings.Join(g, ",") }
func (g givenBrokers) Addrs() []string { return g }
func (givenBrokers) Close()            {}

type nativeBrokers struct{ c *kafkalocal.Cluster }

func (n nativeBrokers) String() string {
	return fmt.Sprintf("brokers: native, Kafka %s, %d nodes", n.c.Release.Version, n.c.Nodes)
}
func (n nativeBrokers) Addrs() []string                        { return n.c.Addrs(kafkalocal.Plaintext) }
func (n nativeBrokers) Nodes() int                             { return n.c.Nodes }
func (n nativeBrokers) Kill(i int) error                       { return n.c.Kill(i) }
func (n nativeBrokers) Pause(i int) error                      { return n.c.Pause(i) }
func (n nativeBrokers) Resume(i int) error                     { return n.c.Resume(i) }
func (n nativeBrokers) Stop(i int) error                       { return n.c.StopNode(i) }
func (n nativeBrokers) Start(ctx context.Context, i int) error { return n.c.StartNode(ctx, i) }
func (n nativeBrokers) Restore(ctx context.Context) error {
	for i := 1; i <= n.c.Nodes; i++ {
		if n.c.Pid(i) != 0 {
			if err := n.c.Resume(i); err != nil {
				return err
			}
		}
	}
	return n.c.Start(ctx)
}
func (n nativeBrokers) Close() {
	if err := n.c.Clean(); err != nil {
		say("%v", err)
	}
}

// embeddedBroker is the binary's own broker, as one process.
type embeddedBroker struct {
	*process
	at string
}

func startEmbedded(ctx context.Context) (brokers, error) {
	at, err := freeAddress()
	if err != nil {
		return nil, err
	}
	p, err := newProcess("broker", filepath.Join(suite.folder, "broker.log"), nil, "broker", "--data-dir", filepath.Join(suite.folder, "broker"), "--broker.listen", at)
	if err != nil {
		return nil, err
	}
	b := embeddedBroker{p, at}
	return b, b.Start(ctx, 1)
}

func (b embeddedBroker) String() string   { return "brokers: EMBEDDED, one node" }
func (b embeddedBroker) Addrs() []string  { return []string{b.at} }
func (b embeddedBroker) Nodes() int       { return 1 }
func (b embeddedBroker) Kill(int) error   { b.signal(syscall.SIGKILL); return nil }
func (b embeddedBroker) Stop(int) error   { b.signal(syscall.SIGTERM); return nil }
func (b embeddedBroker) Pause(int) error  { b.signal(syscall.SIGSTOP); return nil }
func (b embeddedBroker) Resume(int) error { b.signal(syscall.SIGCONT); return nil }
func (b embeddedBroker) Close()           { b.signal(syscall.SIGKILL) }
func (b embeddedBroker) Restore(ctx context.Context) error {
	b.signal(syscall.SIGKILL)
	return b.Start(ctx, 1)
}
func (b embeddedBroker) Start(ctx context.Context, _ int) error {
	if err := b.launch(); err != nil {
		return err
	}
	return poll(ctx, time.Minute, often, func() error { return dial(b.at) })
}

// needKillable gives the brokers to a test that does things to them, and sees to it that all run after it.
func needKillable(t *testing.T, nodes int) killable {
	t.Helper()
	k, ok := suite.brokers.(killable)
	switch {
	case !ok:
		t.Skipf("NOT RUN: %s are not ours to kill", suite.brokers)
	case k.Nodes() < nodes:
		t.Skipf("NOT RUN: it needs %d nodes; %s", nodes, suite.brokers)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		if err := k.Restore(ctx); err != nil {
			t.Error(err)
		}
		awaitInSync(t)
	})
	return k
}

// kafkaClient is one that is not the product's own.
func kafkaClient(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(suite.brokers.Addrs()...)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// leader is the node that leads partition 0 of a topic.
func leader(t testing.TB, topic string) int {
	t.Helper()
	c := kafkaClient(t)
	node := 0
	eventually(t, "a leader of "+topic, func() error {
		m, err := metadata(c)
		if err != nil {
			return err
		}
		for _, topicOf := range m.Topics {
			if topicOf.Topic != nil && *topicOf.Topic == topic {
				for _, p := range topicOf.Partitions {
					if p.Partition == 0 && p.Leader > 0 {
						node = int(p.Leader)
						return nil
					}
				}
			}
		}
		return errors.New("there is none")
	})
	return node
}

func metadata(c *kgo.Client) (*kmsg.MetadataResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return kmsg.NewPtrMetadataRequest().RequestWith(ctx, c)
}

// awaitInSync waits until all replicas of all partitions are in sync: only then may the next node die.
func awaitInSync(t testing.TB) time.Duration {
	t.Helper()
	began, c := time.Now(), kafkaClient(t)
	eventually(t, "all replicas to be in sync", func() error {
		m, err := metadata(c)
		if err != nil {
			return err
		}
		behind := 0
		for _, topic := range m.Topics {
			for _, p := range topic.Partitions {
				if len(p.ISR) < len(p.Replicas) {
					behind++
				}
			}
		}
		if behind > 0 || len(m.Topics) == 0 {
			return fmt.Errorf("%d partitions of %d topics are not in sync", behind, len(m.Topics))
		}
		return nil
	})
	return time.Since(began)
}

// startNode starts a node of the cluster again.
func startNode(t testing.TB, k killable, node int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	if err := k.Start(ctx, node); err != nil {
		t.Fatal(err)
	}
}
