// Command waymark is the one binary of Waymark: it runs the roles of the pipeline, and it is the client of its API.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/waymarkhq/waymark/cmd/waymark/internal/console"
)

// errInterrupted is the cause of a context that a signal has ended.
var errInterrupted = errors.New("interrupted")

func main() { os.Exit(realMain()) }

func realMain() int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	out := console.New(console.File(os.Stdout), console.File(os.Stderr))
	go func() {
		<-signals
		cancel(errInterrupted)
		<-signals // whoever asks twice does not want to wait
		out.SetStatus("")
		os.Exit(exitInterrupted)
	}()
	return run(ctx, os.Args[1:], &environment{
		console: out, stdin: os.Stdin, environ: os.Environ(), getenv: os.Getenv, newRuntime: newRuntime,
	})
}
