package kafkalocal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	pollEvery    = 20 * time.Millisecond
	killPatience = 10 * time.Second
	stopPatience = 5 * time.Second
	termPatience = 30 * time.Second
)

// Start starts the nodes that do not run and waits until all are ready and the coordinators of groups and transactions are
// there; otherwise the first client that needs one waits for seconds.
func (c *Cluster) Start(ctx context.Context) error {
	for i := 1; i <= c.Nodes; i++ {
		if c.Pid(i) == 0 {
			if err := c.launch(ctx, i); err != nil {
				return err
			}
		}
	}
	if err := c.WaitReady(ctx); err != nil {
		return err
	}
	return c.poll(ctx, func() error {
		return errors.Join(findCoordinator(ctx, c.Addr(1, Plaintext), ofGroup), findCoordinator(ctx, c.Addr(1, Plaintext), ofTransaction))
	})
}

// StartNode starts node i with the data that it has and waits until it is ready.
func (c *Cluster) StartNode(ctx context.Context, i int) error {
	if c.Pid(i) != 0 {
		return fmt.Errorf("kafkalocal: node %d runs", i)
	}
	if err := c.launch(ctx, i); err != nil {
		return err
	}
	return c.WaitReady(ctx)
}

// Kill ends node i with SIGKILL and waits until its process is gone.
func (c *Cluster) Kill(i int) error {
	if err := c.signal(i, syscall.SIGKILL); err != nil {
		return err
	}
	return c.waitGone(i, killPatience)
}

// Pause stops node i with SIGSTOP: its connections stay open, and nothing answers.
func (c *Cluster) Pause(i int) error { return c.signal(i, syscall.SIGSTOP) }

// Resume lets a paused node go on.
func (c *Cluster) Resume(i int) error { return c.signal(i, syscall.SIGCONT) }

// StopNode shuts node i down in order.
func (c *Cluster) StopNode(i int) error { return c.terminate(i, termPatience) }

func (c *Cluster) terminate(i int, patience time.Duration) error {
	if err := c.signal(i, syscall.SIGTERM); err != nil {
		return err
	}
	return c.waitGone(i, patience)
}

// WaitReady waits until each node that runs and is not paused names all of them as live brokers.
func (c *Cluster) WaitReady(ctx context.Context) error {
	return c.poll(ctx, func() error { return c.ready(ctx) })
}

func (c *Cluster) poll(ctx context.Context, ok func() error) error {
	for {
		err := ok()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kafkalocal: not ready: %w (logs: %s)", err, c.file("node*", "kafka.log"))
		case <-time.After(pollEvery):
		}
	}
}

func (c *Cluster) ready(ctx context.Context) error {
	var running []int
	for i := 1; i <= c.Nodes; i++ {
		switch pid := c.Pid(i); {
		case pid != 0 && !paused(pid):
			running = append(running, i)
		case pid == 0 && c.launched(i):
			return fmt.Errorf("node %d has ended", i)
		}
	}
	for _, i := range running {
		brokers, err := Brokers(ctx, c.Addr(i, Plaintext))
		if err != nil {
			return fmt.Errorf("node %d: %w", i, err)
		}
		for _, j := range running {
			if !slices.Contains(brokers, int32(j)) {
				return fmt.Errorf("node %d does not see node %d", i, j)
			}
		}
	}
	return nil
}

// Pid is the process id of node i, or 0 if it does not run.
func (c *Cluster) Pid(i int) int {
	b, err := os.ReadFile(c.file(node(i), "pid"))
	if err != nil {
		return 0
	}
	var pid int
	var start string
	if n, _ := fmt.Sscan(string(b), &pid, &start); n != 2 {
		return 0
	}
	// The id may have been given to another process since, which has begun later.
	if got, running := began(pid); !running || got != start {
		return 0
	}
	return pid
}

// note writes down that process pid is node i.
func (c *Cluster) note(i, pid int) error {
	start, _ := began(pid)
	return os.WriteFile(c.file(node(i), "pid"), fmt.Appendf(nil, "%d %s\n", pid, start), 0o600)
}

// began is when a process was started, in ticks since the machine was, and whether it runs. Together with the id it names the
// process for as long as it lives; its command line does not, which is empty for some milliseconds after every exec.
func began(pid int) (start string, running bool) {
	fields := status(pid)
	const state, startTime = 0, 19 // fields 3 and 22 in proc(5)
	if len(fields) <= startTime {
		return "", false
	}
	return fields[startTime], fields[state] != "Z"
}

// status is what proc(5) says in /proc/PID/stat from its third field on.
func status(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return strings.Fields(rest)
}

// RSS is the resident memory of node i in bytes; 0 if it does not run.
func (c *Cluster) RSS(i int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", c.Pid(i)))
	if err != nil {
		return 0
	}
	var size, pages int64
	if n, _ := fmt.Sscan(string(b), &size, &pages); n != 2 {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// paused reports whether a process was stopped with SIGSTOP.
func paused(pid int) bool {
	fields := status(pid)
	return len(fields) > 0 && fields[0] == "T"
}

// launched reports whether node i was started and not ended by this package since.
func (c *Cluster) launched(i int) bool {
	_, err := os.Stat(c.file(node(i), "pid"))
	return err == nil
}

func (c *Cluster) signal(i int, s syscall.Signal) error {
	pid := c.Pid(i)
	if pid == 0 {
		return fmt.Errorf("kafkalocal: node %d does not run", i)
	}
	if err := syscall.Kill(pid, s); err != nil {
		return fmt.Errorf("kafkalocal: node %d: %w", i, err)
	}
	return nil
}

func (c *Cluster) waitGone(i int, timeout time.Duration) error {
	late := time.NewTimer(timeout)
	defer late.Stop()
	for c.Pid(i) != 0 {
		select {
		case <-late.C:
			return fmt.Errorf("kafkalocal: node %d still runs after %v", i, timeout)
		case <-time.After(pollEvery / 4):
		}
	}
	c.mu.Lock()
	reaped := c.reaped[i]
	delete(c.reaped, i)
	c.mu.Unlock()
	if reaped != nil {
		<-reaped
	}
	if err := os.Remove(c.file(node(i), "pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// launch starts the process of node i, which outlives ctx and this process.
func (c *Cluster) launch(ctx context.Context, i int, flags ...string) error {
	log, err := os.OpenFile(c.LogFile(i), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	flags = append(flags, "-Dlog4j2.configurationFile="+c.file("log4j2.properties"))
	if c.Keys != "" {
		flags = append(flags, "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=file://"+c.Keys)
	}
	cmd := c.Release.java(context.WithoutCancel(ctx), flags, c.HeapMB, "kafka.Kafka", c.file(node(i), "server.properties"))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a Ctrl-C at the terminal is not for the node
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("kafkalocal: node %d: %w", i, err)
	}
	// While nobody has waited for it, no other process has its id.
	noted := c.note(i, cmd.Process.Pid)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = cmd.Wait() // how it ended stands in its log
	}()
	c.mu.Lock()
	if c.reaped == nil {
		c.reaped = map[int]<-chan struct{}{}
	}
	c.reaped[i] = gone
	c.mu.Unlock()
	return noted
}
