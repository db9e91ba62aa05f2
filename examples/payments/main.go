// Payments is an application on the framework: payments come in, each account has its running balance, holds end when their
// time is over, a watch raises alerts, and what cannot be understood goes to the dead letters. It knows nothing of documents.
//
//	go run ./examples/payments
//
// starts a broker in this process, sends a hundred payments, some of them twice and some broken, shows what becomes of them,
// and ends with the balances. With -data-dir everything stays in a folder: run it again, or kill it at any time and run it
// again, and the balances are the same, although every payment is sent again.
//
// Where to begin: groups.go has the topology, ledger.go the main stage, ledger_test.go how a stage is tested.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/waymarkhq/waymark/checkpoint"
	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/embedded"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "payments:", err)
		os.Exit(1)
	}
}

// settings are what the flags say.
type settings struct {
	dataDir, brokers string
	count            int
	seed             uint64
	holdFor          time.Duration
	interval         time.Duration
	log              *slog.Logger
}

func parse(args []string, stderr io.Writer) (s settings, err error) {
	f := flag.NewFlagSet("payments", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&s.dataDir, "data-dir", "", "keep everything in this folder (default: a temporary one)")
	f.StringVar(&s.brokers, "brokers", "", "host:port of a Kafka cluster with three brokers, comma separated (default: a broker in this process)")
	f.IntVar(&s.count, "count", 100, "payments to send")
	f.Uint64Var(&s.seed, "seed", 1, "which payments to send")
	f.DurationVar(&s.holdFor, "hold-for", 2*time.Second, "how long a hold reserves its amount")
	f.DurationVar(&s.interval, "interval", 20*time.Millisecond, "pause between two payments")
	verbose := f.Bool("log", false, "log to standard error")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if f.NArg() > 0 || s.count < 0 || s.holdFor < 0 || s.interval < 0 {
		return s, errors.New("no arguments, and no numbers below zero; -help shows the flags")
	}
	s.log = slog.New(slog.DiscardHandler)
	if *verbose {
		s.log = slog.New(slog.NewTextHandler(stderr, nil))
	}
	return s, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	s, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if s.dataDir == "" {
		if s.dataDir, err = os.MkdirTemp("", "payments-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(s.dataDir)) }()
	}
	cluster := kafka.Config{Brokers: strings.Split(s.brokers, ",")}
	if s.brokers == "" {
		broker, startErr := embedded.Start(ctx, embedded.Options{Dir: filepath.Join(s.dataDir, "broker"), Log: s.log})
		if startErr != nil {
			return startErr
		}
		defer func() { err = errors.Join(err, broker.Close(context.WithoutCancel(ctx))) }()
		cluster = broker.Config()
	}
	return work(ctx, s, cluster, newConsole(stdout))
}

// work runs the groups, sends the script, waits until all of it has come to its end, and shows the result.
func work(ctx context.Context, s settings, cluster kafka.Config, c *console) error {
	groups, err := groups(options{topics: topics(), holdFor: s.holdFor, now: time.Now, decided: c.decided, console: c})
	if err != nil {
		return err
	}
	plan, err := plan(s.brokers == "", groups)
	if err != nil {
		return err
	}
	supervisor, err := engine.NewSupervisor(engine.Config{Kafka: cluster, DataDir: filepath.Join(s.dataDir, "engine"), Topics: plan, CreateTopics: true, Log: s.log}, groups...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan error, 1)
	go func() {
		err := supervisor.Run(ctx)
		cancel(err) // without the groups there is nothing to wait for
		ended <- err
	}()
	result, err := follow(ctx, s, cluster, kafka.Limits(plan), supervisor.Ready, c)
	cancel(nil)
	if ended := <-ended; ended != nil {
		return ended
	}
	if err != nil && errors.Is(err, context.Canceled) {
		c.say("interrupted")
		return nil
	}
	if err != nil {
		return err
	}
	c.say("\n%d new payments, %d duplicates and %d redeliveries recognised, %d dead letters, %d alerts\n\n%v", c.count(checkpoint.New),
		c.count(checkpoint.Duplicate), c.count(checkpoint.Redelivery), len(result.letters), len(result.alerts), result)
	return nil
}

// follow sends the script and reads the results until nothing is missing.
func follow(ctx context.Context, s settings, cluster kafka.Config, limits map[string]int, ready func() error, c *console) (rep report, err error) {
	for ready() != nil { // the topics may not be there yet
		if err := pause(ctx, lookEvery); err != nil {
			return rep, err
		}
	}
	reader, err := kafka.NewReader(cluster)
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	sent := script(s.seed, s.count)
	c.say("sending %d records", len(sent))
	if err := send(ctx, cluster, limits, s.interval, sent); err != nil {
		return rep, err
	}
	for {
		if rep, err = read(ctx, reader, topics()); err != nil || len(rep.missing(sent)) == 0 {
			return rep, err
		}
		if err := pause(ctx, lookEvery); err != nil {
			return rep, err
		}
	}
}

const lookEvery = 100 * time.Millisecond

// send sends one record after the other.
func send(ctx context.Context, cluster kafka.Config, limits map[string]int, interval time.Duration, records []kafka.Record) (err error) {
	p, err := kafka.NewProducer(cluster, kafka.ProducerOptions{Limits: limits})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	for _, r := range records {
		if _, _, err := p.SendSync(ctx, r); err != nil {
			return err
		}
		if err := pause(ctx, interval); err != nil {
			return err
		}
	}
	return nil
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
