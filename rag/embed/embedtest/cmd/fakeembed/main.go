// Command fakeembed runs the fake embedding service of package embedtest for tests across processes. It prints its URL
// on the first line of standard output and serves until it is interrupted or terminated.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/waymarkhq/waymark/rag/embed/embedtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "fakeembed:", err)
		}
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("fakeembed", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var c embedtest.Config
	listen := flags.String("listen", "127.0.0.1:0", "loopback address to listen on")
	flags.StringVar(&c.Model, "model", embedtest.DefaultModel, "name of its model")
	flags.IntVar(&c.Dimensions, "dimensions", embedtest.DefaultDimensions, "length of its vectors")
	flags.IntVar(&c.MaxBatch, "max-batch", 0, "texts of one call; 0 is no limit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if c.Dimensions < 1 || c.MaxBatch < 0 || flags.NArg() > 0 {
		return errors.New("dimensions must be positive, max-batch not negative, and there are no arguments")
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	fake := embedtest.NewFake(c)
	server := &http.Server{Handler: fake, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if _, err := fmt.Fprintf(stdout, "http://%s\n", listener.Addr()); err != nil {
		return errors.Join(err, server.Close(), served(ended))
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	fake.Clear()
	return errors.Join(server.Close(), served(ended))
}

// served waits for the server and returns why it ended, if not because it was closed.
func served(ended <-chan error) error {
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
