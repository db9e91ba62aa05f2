package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag/embed/embedtest"
	"github.com/waymarkhq/waymark/rag/embed/openai"
	"go.uber.org/goleak"
)

func TestServesUntilStopped(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"-dimensions", "12", "-model", "m"}, in, io.Discard) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url, http := strings.TrimSpace(line), openai.NewHTTPClient()
	defer http.CloseIdleConnections()
	client, err := openai.New(openai.Config{URL: url, Model: "m", HTTP: http})
	if err != nil {
		t.Fatal(err)
	}
	results, err := client.Embed(ctx, []string{"a"})
	if err != nil || len(results[0].Vector) != 12 || results[0].Vector[0] != embedtest.Vector("a", 12)[0] {
		t.Errorf("%+v, %v", results, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{{"-dimensions", "0"}, {"-max-batch", "-1"}, {"argument"}, {"-nonsense"}, {"-listen", "nowhere:-1"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}
