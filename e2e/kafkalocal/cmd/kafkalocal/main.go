// Command kafkalocal drives a local Kafka cluster, for people; run it without arguments to see how.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/waymarkhq/waymark/e2e/kafkalocal"
)

const usage = `usage: kafkalocal COMMAND -dir DIR [flags] [NODE]

  up        make the cluster if DIR has none, start the nodes that do not run, wait until ready
  status    process id and resident memory of each node, and the brokers that each one sees
  kill N    end node N with SIGKILL          start N    start node N again, with the same data
  pause N   stop node N with SIGSTOP         resume N   let it go on
  stop [N]  shut down node N, or all nodes
  clean     end all nodes and remove DIR
  jars      without -dir: fetch a release and print the folder of its jars

The first 'up' fetches Kafka with Maven and makes an archive of its classes, into $WAYMARK_CACHE or waymark in the user's
cache folder.

`

// patience bounds one command; the first one downloads.
const patience = 5 * time.Minute

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kafkalocal:", err)
		os.Exit(1)
	}
}

type command struct {
	options kafkalocal.Options
	version string
	cluster *kafkalocal.Cluster
	node    int // 0: none was named
}

func run(args []string) error {
	var c command
	flags := flag.NewFlagSet("kafkalocal", flag.ExitOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage); flags.PrintDefaults() }
	flags.StringVar(&c.options.Dir, "dir", "", "the cluster's folder")
	flags.StringVar(&c.version, "version", kafkalocal.DefaultVersion, "up: release of Kafka")
	flags.IntVar(&c.options.Nodes, "nodes", 1, "up: 1 or 3")
	flags.IntVar(&c.options.Port, "port", 0, "up: first port; node i has the 4 from PORT+4*(i-1): PLAINTEXT, CONTROLLER, SASL, SSL (default: free ones)")
	flags.IntVar(&c.options.HeapMB, "heap", 256, "up: heap of each node in MiB")
	flags.BoolVar(&c.options.TLS, "tls", false, "up: an SSL listener too")
	flags.Func("user", "up: NAME=PASSWORD, a SCRAM-SHA-512 and PLAIN user; repeatable", pair(&c.options.Users))
	flags.Func("prop", "up: NAME=VALUE, a server property; repeatable", pair(&c.options.Props))
	if len(args) == 0 {
		flags.Usage()
		return errors.New("no command")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if args[0] == "jars" {
		r, err := c.release(ctx)
		if err == nil {
			fmt.Println(r.Jars)
		}
		return err
	}
	if c.options.Dir == "" {
		return errors.New("-dir is missing")
	}
	if err := c.open(ctx, args[0] == "up"); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		n, err := strconv.Atoi(flags.Arg(0))
		if err != nil || n < 1 || n > c.cluster.Nodes {
			return fmt.Errorf("no node %q", flags.Arg(0))
		}
		c.node = n
	}
	return c.do(ctx, args[0])
}

// open finds the cluster of the folder, or makes it.
func (c *command) open(ctx context.Context, create bool) (err error) {
	c.cluster, err = kafkalocal.Open(c.options.Dir)
	if !create || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if c.options.Release, err = c.release(ctx); err != nil {
		return err
	}
	if err := c.options.Release.Warm(ctx); err != nil {
		return err
	}
	c.cluster, err = kafkalocal.New(ctx, c.options)
	return err
}

func (c *command) release(ctx context.Context) (kafkalocal.Release, error) {
	cache, err := kafkalocal.CacheDir()
	if err != nil {
		return kafkalocal.Release{}, err
	}
	return kafkalocal.Fetch(ctx, cache, c.version)
}

func (c *command) do(ctx context.Context, name string) error {
	switch {
	case name == "up":
		if err := c.cluster.Start(ctx); err != nil {
			return err
		}
		fmt.Println(strings.Join(c.cluster.Addrs(kafkalocal.Plaintext), ","))
		return nil
	case name == "status":
		c.status(ctx)
		return nil
	case name == "clean":
		return c.cluster.Clean()
	case name == "stop" && c.node == 0:
		return c.cluster.Stop()
	}
	ofNode := map[string]func(int) error{
		"start":  func(n int) error { return c.cluster.StartNode(ctx, n) },
		"stop":   c.cluster.StopNode,
		"kill":   c.cluster.Kill,
		"pause":  c.cluster.Pause,
		"resume": c.cluster.Resume,
	}[name]
	switch {
	case ofNode == nil:
		return fmt.Errorf("unknown command %q", name)
	case c.node == 0:
		return fmt.Errorf("%s needs the number of a node", name)
	}
	return ofNode(c.node)
}

func (c *command) status(ctx context.Context) {
	for i := 1; i <= c.cluster.Nodes; i++ {
		at := c.cluster.Addr(i, kafkalocal.Plaintext)
		brokers, err := kafkalocal.Brokers(ctx, at)
		fmt.Printf("node %d: %s pid %d, RSS %d MiB, sees %v", i, at, c.cluster.Pid(i), c.cluster.RSS(i)>>20, brokers)
		if err != nil {
			fmt.Printf(" (%v)", err)
		}
		fmt.Println()
	}
}

func pair(m *map[string]string) func(string) error {
	return func(s string) error {
		k, v, ok := strings.Cut(s, "=")
		if !ok {
			return fmt.Errorf("%q is not NAME=VALUE", s)
		}
		if *m == nil {
			*m = map[string]string{}
		}
		(*m)[k] = v
		return nil
	}
}
