package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/waymarkhq/waymark/kafka"
)

// offsetRetention is how long the broker remembers offsets of a group that nobody is in: for ever, because this machine
// may be switched off for months. The library counts it in nanoseconds, which a longer time would overflow.
const offsetRetention = 100 * 365 * 24 * time.Hour

// ClusterID is what the broker calls itself (kafka.ClusterID), so that others plan its topics for it.
const ClusterID = "waymark-embedded"

// Options of Start.
type Options struct {
	// Dir holds the broker's whole state; it is made if missing.
	Dir string
	// Listen is a loopback address; with port 0 a free port that stays the same for the folder. "" is 127.0.0.1:0.
	Listen string
	// Plan are the topics to make, or to alter, before Start returns (kafka.PlanOptions.Embedded).
	Plan []kafka.TopicSpec
	// SyncWrites waits for the disk before a record is acknowledged; see the package comment.
	SyncWrites bool
	Log        *slog.Logger // slog.Default() if nil
}

// Broker is a running broker.
type Broker struct {
	cluster *kfake.Cluster
	silent  *silent
	addr    string
	lock    *Lock
	close   sync.Once
	done    chan struct{}
	err     error // once done is closed
}

// Start takes the folder (*LockedError if another process has it), opens its log, listens, and makes the plan's topics.
func Start(ctx context.Context, o Options) (*Broker, error) {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	lock, err := AcquireLock(o.Dir)
	if err != nil {
		return nil, err
	}
	b := &Broker{lock: lock, done: make(chan struct{})}
	if err := b.open(o); err != nil {
		return nil, errors.Join(fmt.Errorf("start embedded broker: %w", err), lock.Release())
	}
	if len(o.Plan) > 0 {
		if _, err := kafka.Apply(ctx, b.Config(), o.Plan); err != nil {
			return nil, errors.Join(fmt.Errorf("start embedded broker: %w", err), b.Close(context.WithoutCancel(ctx)))
		}
	}
	return b, nil
}

func (b *Broker) open(o Options) error {
	l, err := listen(o.Dir, o.Listen)
	if err != nil {
		return err
	}
	b.addr = l.Addr().String()
	options := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.ClusterID(ClusterID),
		kfake.DataDir(filepath.Join(o.Dir, "log")),
		kfake.ListenFn(func(string, string) (net.Listener, error) { return l, nil }),
		kfake.WithLogger(logger{o.Log}),
		kfake.BrokerConfigs(map[string]string{
			"offsets.retention.minutes": strconv.Itoa(int(offsetRetention.Minutes())),
		}),
	}
	if o.SyncWrites {
		options = append(options, kfake.SyncWrites())
	}
	b.cluster, err = kfake.NewCluster(options...)
	if err != nil {
		return errors.Join(err, ignoreClosed(l.Close()))
	}
	if b.silent, err = watchSilent(b.cluster, b.addr, o.Log); err != nil {
		b.cluster.Close()
		return err
	}
	return nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Addrs are the host:port pairs of the broker.
func (b *Broker) Addrs() []string { return []string{b.addr} }

// Config reaches the broker.
func (b *Broker) Config() kafka.Config { return kafka.Config{Brokers: b.Addrs()} }

// Cluster is the broker's control, for tests that need its faults.
func (b *Broker) Cluster() *kfake.Cluster { return b.cluster }

// Close writes the state down and lets go of the folder. When ctx ends first, the rest goes on in the background, as it
// does when the process ends: what was acknowledged is safe either way. It may be called more than once.
func (b *Broker) Close(ctx context.Context) error {
	b.close.Do(func() {
		go func() {
			defer close(b.done)
			b.silent.close()
			b.cluster.Close()
			b.err = b.lock.Release()
		}()
	})
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return fmt.Errorf("close embedded broker: %w", ctx.Err())
	}
}

// logger passes on what the broker warns about.
type logger struct{ log *slog.Logger }

func (l logger) Logf(level kfake.LogLevel, format string, args ...any) {
	message := strings.TrimSpace(fmt.Sprintf(format, args...))
	switch level {
	case kfake.LogLevelError:
		l.log.Error("embedded broker", "message", message)
	case kfake.LogLevelWarn:
		l.log.Warn("embedded broker", "message", message)
	}
}
