// Package kafkalocal runs real Apache Kafka nodes (KRaft, broker and controller in one) as processes on 127.0.0.1, for tests
// and for people who try things. It needs Linux, Java 17 or later, and Maven the first time.
//
// All of a cluster's state is in its folder, process ids included: one process may start a cluster and another drive it.
package kafkalocal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// Options describe a cluster. Release and Dir are required; the zero value of everything else is usable.
type Options struct {
	Release Release
	Dir     string            // the cluster's own folder: node1, node2, ...
	Nodes   int               // 1 (default) or 3
	Port    int               // first port; 0 takes free ones
	HeapMB  int               // heap of each node, 256 by default
	Props   map[string]string // server properties that override those of the package

	// Users are SCRAM-SHA-512 users, name to password. If there are any, each node also has a SASL listener, which takes
	// SCRAM-SHA-512 and PLAIN, and ACLs are enforced. Superusers are admin and ANONYMOUS: who comes by Plaintext, or by SSL
	// without a certificate.
	Users map[string]string
	// Keys is a file with a JSON Web Key Set. If there is one, the SASL listener takes OAUTHBEARER as well: tokens that are
	// signed with these keys by TokenIssuer for TokenAudience; the user is their subject.
	Keys string
	// TLS gives each node an SSL listener too. The authority's certificate is Dir/tls/ca.pem.
	TLS bool
}

// Tokens of OAUTHBEARER must be of this issuer and for this audience.
const (
	TokenIssuer   = "https://issuer.example"
	TokenAudience = "kafka"
)

// Listener is one of the listeners of each node.
type Listener int

// Listeners. SASL and SSL exist where the options ask for them.
const (
	Plaintext Listener = iota
	controller
	SASL
	SSL
	portsPerNode = 4
)

// Cluster is a cluster whose files exist; its nodes run or do not. Methods may be called concurrently for different nodes.
type Cluster struct {
	Options

	mu     sync.Mutex
	reaped map[int]<-chan struct{} // of the nodes that this process has started: closed once the process is gone
}

// New writes the files of a cluster and formats its storage. Dir must not hold a cluster yet.
func New(ctx context.Context, o Options) (*Cluster, error) {
	if o.Nodes == 0 {
		o.Nodes = 1
	}
	if o.Nodes != 1 && o.Nodes != 3 {
		return nil, fmt.Errorf("kafkalocal: %d nodes: 1 or 3", o.Nodes)
	}
	if o.HeapMB == 0 {
		o.HeapMB = 256
	}
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, err
	}
	if o.Port == 0 {
		if o.Port, err = freePorts(o.Nodes * portsPerNode); err != nil {
			return nil, err
		}
	}
	c := &Cluster{Options: o}
	if _, err := os.Stat(c.file("cluster.json")); err == nil {
		return nil, fmt.Errorf("kafkalocal: %s already holds a cluster", o.Dir)
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	if o.TLS {
		if err := writeTLS(c.file("tls")); err != nil {
			return nil, fmt.Errorf("kafkalocal: certificates: %w", err)
		}
	}
	if err := os.WriteFile(c.file("log4j2.properties"), []byte(log4j2), 0o600); err != nil {
		return nil, err
	}
	if err := c.format(ctx); err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return nil, err
	}
	return c, os.WriteFile(c.file("cluster.json"), b, 0o600)
}

// Open returns the cluster that New made in dir; the error is fs.ErrNotExist if there is none.
func Open(dir string) (*Cluster, error) {
	b, err := os.ReadFile(filepath.Join(dir, "cluster.json"))
	if err != nil {
		return nil, err
	}
	c := &Cluster{}
	if err := json.Unmarshal(b, &c.Options); err != nil {
		return nil, fmt.Errorf("kafkalocal: %s: %w", dir, err)
	}
	return c, nil
}

// Addr is the address of one listener of node i, counted from 1.
func (c *Cluster) Addr(i int, l Listener) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Port+(i-1)*portsPerNode+int(l)))
}

// Addrs are the addresses of one listener of all nodes.
func (c *Cluster) Addrs(l Listener) []string {
	var addrs []string
	for i := 1; i <= c.Nodes; i++ {
		addrs = append(addrs, c.Addr(i, l))
	}
	return addrs
}

// LogFile is where node i writes its log.
func (c *Cluster) LogFile(i int) string { return c.file(node(i), "kafka.log") }

func node(i int) string { return "node" + strconv.Itoa(i) }

func (c *Cluster) file(elem ...string) string {
	return filepath.Join(append([]string{c.Dir}, elem...)...)
}

// Stop ends all nodes: one after the other in order, the last of several with SIGKILL, since it waits in vain for a quorum.
// After a test that throws its data away, Clean is faster.
func (c *Cluster) Stop() error {
	var errs []error
	for i := 1; i <= c.Nodes; i++ {
		if c.Pid(i) == 0 {
			continue
		}
		if err := c.Resume(i); err != nil {
			errs = append(errs, err)
		}
		if (c.Nodes == 1 || i < c.Nodes) && c.terminate(i, stopPatience) == nil {
			continue
		}
		errs = append(errs, c.Kill(i))
	}
	return errors.Join(errs...)
}

// Clean ends all nodes with SIGKILL and removes the cluster's folder.
func (c *Cluster) Clean() error {
	for i := 1; i <= c.Nodes; i++ {
		if c.Pid(i) != 0 {
			if err := c.Kill(i); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(c.Dir)
}
