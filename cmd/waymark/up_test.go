package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/cmd/waymark/internal/datadir"
	"github.com/waymarkhq/waymark/cmd/waymark/internal/servertest"
	"github.com/waymarkhq/waymark/config"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/rag"
)

func TestUpServesUntilASignal(t *testing.T) {
	s := servertest.Start(t)
	folder(t, map[string]string{"docs/a": "x", "docs/b": servertest.NoText})
	c := command("up", "docs", "--data-dir", "data")
	c.runtime = &fakeRuntime{at: at(s.URL)}
	code := c.start(t)
	eventually(t, "the summary", func() bool { return strings.Contains(c.out.String(), "documents: ") })
	c.signal(errInterrupted)
	if got := c.wait(t, code); got != 0 {
		t.Errorf("exit code %d: %s", got, c.err.String())
	}
	want := "Waymark is ready: " + s.URL + "\ndocs/b: dead (no_text): The document has no text.\n2 documents: 1 indexed, 1 dead (T s, 1 chunk)\n"
	if got := steady(c.out.String()); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if dir, err := datadir.Open("data"); err != nil {
		t.Errorf("the data folder is not free again: %v", err)
	} else if err := dir.Close(); err != nil {
		t.Error(err)
	}
}

func TestUpExitWhenIdle(t *testing.T) {
	for text, want := range map[string]int{"x": exitDone, servertest.NoText: exitDead, "": exitFailed} {
		s := servertest.Start(t)
		folder(t, map[string]string{"a": text})
		c := command("up", "a", "--exit-when-idle")
		c.runtime = &fakeRuntime{at: at(s.URL)}
		if code := c.do(t); code != want {
			t.Errorf("%q: exit code %d, want %d:\n%s%s", text, code, want, c.out.String(), c.err.String())
		}
	}
}

func TestIdle(t *testing.T) {
	for name, tc := range map[string]struct {
		stats api.Stats
		idle  bool
	}{
		"nothing":   {api.Stats{}, true},
		"all ended": {api.Stats{Documents: map[rag.Status]int64{rag.StatusIndexed: 2, rag.StatusDead: 1, rag.StatusAccepted: 0}, DeadLetters: map[rag.LetterState]int64{rag.LetterWaiting: 1}}, true},
		"in work":   {api.Stats{Documents: map[rag.Status]int64{rag.StatusChunked: 1}}, false},
		"lag":       {api.Stats{Lag: map[string]int64{"chunker": 1}}, false},
		"scheduled": {api.Stats{DeadLetters: map[rag.LetterState]int64{rag.LetterScheduled: 1}}, false},
		"replaying": {api.Stats{DeadLetters: map[rag.LetterState]int64{rag.LetterReplaying: 1}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := servertest.Start(t)
			s.Stats.Counts = tc.stats
			t.Chdir(t.TempDir())
			c := command("up", "--exit-when-idle")
			c.runtime = &fakeRuntime{at: at(s.URL)}
			code := c.start(t)
			if tc.idle {
				if got := c.wait(t, code); got != 0 {
					t.Errorf("exit code %d: %s", got, c.err.String())
				}
				return
			}
			eventually(t, "it has looked", func() bool { return strings.Contains(c.out.String(), "ready") })
			c.signal(errInterrupted)
			if got := c.wait(t, code); got != exitInterrupted {
				t.Errorf("exit code %d: it did not wait", got)
			}
		})
	}
}

func TestUpInterruptedWhileItIngests(t *testing.T) {
	s := servertest.Start(t)
	folder(t, map[string]string{"a": servertest.Held})
	c := command("up", "a")
	c.runtime = &fakeRuntime{at: at(s.URL)}
	code := c.start(t)
	eventually(t, "accepted", func() bool { return len(s.Submitted()) == 1 })
	c.signal(errInterrupted)
	if got := c.wait(t, code); got != exitInterrupted {
		t.Errorf("exit code %d, want %d", got, exitInterrupted)
	}
}

func TestUpWhenTheRuntimeFails(t *testing.T) {
	t.Chdir(t.TempDir())
	c := command("up")
	c.runtime = &fakeRuntime{early: errBroken}
	if code := c.do(t); code != exitFailed || c.err.String() != "waymark: the store is broken\n" {
		t.Errorf("exit code %d, errors %q", code, c.err.String())
	}
	failing := &fakeRuntime{fail: make(chan error, 1)}
	c = command("up", "--log-level=error")
	c.runtime = failing
	code := c.start(t)
	eventually(t, "ready", func() bool { return strings.Contains(c.out.String(), "ready") })
	failing.fail <- errBroken
	if got := c.wait(t, code); got != exitFailed || c.err.String() != "waymark: the store is broken\n" {
		t.Errorf("exit code %d, errors %q", got, c.err.String())
	}
	c = command("up")
	if code := c.do(t); code != exitFailed || c.err.String() != "waymark: this build has no pipeline\n" {
		t.Errorf("exit code %d, errors %q", code, c.err.String())
	}
}

func TestUpInterruptedWhileItStarts(t *testing.T) {
	t.Chdir(t.TempDir())
	c := command("up")
	starting := &startingRuntime{entered: make(chan struct{})}
	c.runtime = starting
	code := c.start(t)
	<-starting.entered
	c.signal(errInterrupted)
	if got := c.wait(t, code); got != exitInterrupted {
		t.Errorf("exit code %d, want %d", got, exitInterrupted)
	}
}

func TestASecondProcessIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	dir, err := datadir.Open("waymark-data")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for _, args := range [][]string{{"up"}, {"broker"}, {"run", "chunker", "--kafka.brokers=a:1"}} {
		c := command(args...)
		c.runtime = &fakeRuntime{}
		want := fmt.Sprintf("waymark: the data folder ./waymark-data is in use by the process %d\n", os.Getpid())
		if code := c.do(t); code != exitFailed || c.err.String() != want {
			t.Errorf("%q: exit code %d, errors %q", args, code, c.err.String())
		}
	}
}

func TestUpWithTokensCallsItsOwnAPI(t *testing.T) {
	folder(t, map[string]string{"a": "x"})
	runtime := &fakeRuntime{}
	runtime.beforeReady = func(cfg *config.Config) {
		var tokens []api.Token
		for _, token := range cfg.API.Tokens {
			converted := api.Token{Name: token.Name, SHA256: token.Hash}
			for _, s := range token.Scopes {
				converted.Scopes = append(converted.Scopes, api.Scope(s))
			}
			tokens = append(tokens, converted)
		}
		runtime.at = at(servertest.Start(t, servertest.WithTokens(tokens...)).URL)
	}
	c := command("up", "a", "--exit-when-idle")
	c.runtime, c.environ = runtime, []string{"WAYMARK_API_TOKENS=ci:read:" + strings.Repeat("ab", 32)}
	if code := c.do(t); code != 0 || len(runtime.cfg.API.Tokens) != 2 {
		t.Errorf("exit code %d, %d tokens: %s", code, len(runtime.cfg.API.Tokens), c.err.String())
	}
}

func TestUpWatches(t *testing.T) {
	s := servertest.Start(t)
	folder(t, map[string]string{"docs/a.txt": "first", "docs/b.txt": "gone soon"})
	c := command("up", "docs", "--watch", "--data-dir", "data")
	c.runtime = &fakeRuntime{at: at(s.URL)}
	code := c.start(t)
	eventually(t, "the first ingestion", func() bool { return strings.Contains(c.out.String(), "2 documents: 2 indexed") })
	put(t, "docs/a.txt", "second, longer")
	put(t, "docs/new/c.txt", "new")
	if err := os.Remove("docs/b.txt"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the changes", func() bool {
		return string(s.Content("docs/a.txt")) == "second, longer" && string(s.Content("docs/new/c.txt")) == "new" && s.Content("docs/b.txt") == nil
	})
	c.signal(errInterrupted)
	if got := c.wait(t, code); got != 0 {
		t.Errorf("exit code %d: %s", got, c.err.String())
	}
}

func TestReadyLines(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, tc := range []struct {
		args []string
		at   Addresses
		want string
	}{
		{[]string{"up"}, Addresses{API: "[::]:8484", Broker: "127.0.0.1:9092"}, "Waymark is ready: http://127.0.0.1:8484; broker 127.0.0.1:9092\n"},
		{[]string{"up", "--json"}, Addresses{API: "127.0.0.1:8484", Broker: "127.0.0.1:9092"}, `{"ready":{"api":"http://127.0.0.1:8484","broker":"127.0.0.1:9092"}}` + "\n"},
		{[]string{"broker"}, Addresses{Broker: "127.0.0.1:9092"}, "The broker is ready; broker 127.0.0.1:9092\n"},
		{[]string{"run", "chunker", "tracker", "--kafka.brokers=a:1"}, Addresses{Monitor: "0.0.0.0:9"}, "Ready: chunker, tracker; health and metrics http://127.0.0.1:9\n"},
	} {
		c := command(tc.args...)
		runtime := &fakeRuntime{at: tc.at}
		c.runtime = runtime
		code := c.start(t)
		eventually(t, "ready", func() bool { return strings.HasSuffix(c.out.String(), "\n") })
		c.signal(errInterrupted)
		if got := c.wait(t, code); got != 0 || c.out.String() != tc.want || runtime.what != tc.args[0] {
			t.Errorf("%q: exit code %d, output %q, %s", tc.args, got, c.out.String(), runtime.what)
		}
	}
}

func TestTopics(t *testing.T) {
	missing := kafka.Difference{Topic: "waymark.documents", Kind: kafka.DifferenceMissing, Want: "12 partitions", Fixable: true}
	for _, tc := range []struct {
		line        string
		differences []kafka.Difference
		err         error
		code        int
		out         string
	}{
		{"topics plan", nil, nil, 0, "The topics are as they should be.\n"},
		{"topics apply", nil, nil, 0, "Nothing had to be changed.\n"},
		{"topics plan", []kafka.Difference{missing}, nil, 0, missing.String() + "\n"},
		{"topics apply --json", []kafka.Difference{missing}, nil, 0, `{"topic":"waymark.documents","kind":"missing","have":"","want":"12 partitions","fixable":true}` + "\n"},
		{"topics apply", []kafka.Difference{missing}, &kafka.UnfixableError{Differences: []kafka.Difference{missing}}, 1, missing.String() + "\n"},
		{"topics plan", nil, errBroken, 1, ""},
	} {
		c := command(append(strings.Fields(tc.line), "--kafka.brokers=a:1")...)
		runtime := &fakeRuntime{differences: tc.differences, topicsErr: tc.err}
		c.runtime = runtime
		if code := c.do(t); code != tc.code || c.out.String() != tc.out || !strings.Contains(tc.line, runtime.what) {
			t.Errorf("%s: exit code %d, output %q %q", tc.line, code, c.out.String(), c.err.String())
		}
	}
}
