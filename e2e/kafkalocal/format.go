package kafkalocal

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"crypto/rand"
	mathrand "math/rand/v2"
)

// format writes the properties of each node and formats its storage, all nodes at once.
func (c *Cluster) format(ctx context.Context) error {
	clusterID, err := newClusterID()
	if err != nil {
		return err
	}
	errs := make([]error, c.Nodes)
	var formatting sync.WaitGroup
	for i := 1; i <= c.Nodes; i++ {
		if err := os.MkdirAll(c.file(node(i)), 0o755); err != nil {
			return err
		}
		conf := c.file(node(i), "server.properties")
		if err := os.WriteFile(conf, []byte(c.properties(i)), 0o600); err != nil {
			return err
		}
		args := []string{"kafka.tools.StorageTool", "format", "--cluster-id", clusterID, "--config", conf}
		for name, password := range c.Users {
			args = append(args, "--add-scram", fmt.Sprintf("SCRAM-SHA-512=[name=%s,password=%s]", name, password))
		}
		formatting.Go(func() {
			if out, err := c.Release.java(ctx, nil, toolHeapMB, args...).CombinedOutput(); err != nil {
				errs[i-1] = fmt.Errorf("kafkalocal: formatting node %d: %w\n%s", i, err, out)
			}
		})
	}
	formatting.Wait()
	return errors.Join(errs...)
}

func newClusterID() (string, error) {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	id := base64.RawURLEncoding.EncodeToString(b)
	if id[0] == '-' { // would be read as an option
		id = "A" + id[1:]
	}
	return id, nil
}

// Ports are taken below the ephemeral range (from 32768), where a client's own outgoing connection could take a killed
// node's port.
const (
	lowestPort  = 20000
	highestPort = 32000
)

// freePorts finds n free ports in a row and returns the first.
func freePorts(n int) (int, error) {
	for range 100 {
		first := lowestPort + mathrand.IntN(highestPort-lowestPort-n)
		if portsAreFree(first, n) {
			return first, nil
		}
	}
	return 0, errors.New("kafkalocal: no free range of ports")
}

func portsAreFree(first, n int) bool {
	for p := first; p < first+n; p++ {
		l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: p})
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}
