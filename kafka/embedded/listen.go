package embedded

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Free ports are looked for below the range from which systems take the ports of outgoing connections: one of those could
// sit on the port when the broker comes back.
const (
	firstPort = 20000
	portCount = 12000
)

// portNote is the file that holds the port of a folder.
const portNote = "port"

// Address is where the broker of a folder listens, or did when it ran last; listen is as in Options. false: it never ran.
// Whether a broker answers there, only asking tells.
func Address(dir, listen string) (address string, known bool) {
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", false
	}
	if port != "0" {
		return listen, true
	}
	was := readPort(filepath.Join(dir, portNote))
	return net.JoinHostPort(host, strconv.Itoa(was)), was > 0
}

// listen opens the address. Where its port is 0, the port of the folder is used: the one of last time if it is free, else
// the next free one, which is noted for next time.
func listen(dir, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("broker.listen: %w", err)
	}
	if err := loopbackOnly(host); err != nil {
		return nil, err
	}
	if port != "0" {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, fmt.Errorf("broker.listen: %w", err)
		}
		return l, nil
	}
	note := filepath.Join(dir, portNote)
	if was := readPort(note); was > 0 {
		if l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(was))); err == nil {
			return l, nil
		}
	}
	l, got, err := listenFree(dir, host)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(note, []byte(strconv.Itoa(got)+"\n"), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("note the broker's port: %w", err), l.Close())
	}
	return l, nil
}

// listenFree starts at a port that depends on the folder, so that several folders do not ask for the same ones.
func listenFree(dir, host string) (net.Listener, int, error) {
	h := fnv.New32a()
	h.Write([]byte(dir))
	start := int(h.Sum32() % portCount)
	var last error
	for i := range portCount {
		port := firstPort + (start+i)%portCount
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			return l, port, nil
		}
		last = err
	}
	return nil, 0, fmt.Errorf("broker.listen: no free port from %d to %d: %w", firstPort, firstPort+portCount-1, last)
}

// loopbackOnly refuses other addresses: the broker knows no users.
func loopbackOnly(host string) error {
	if host == "localhost" {
		return nil
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("broker.listen: %q is not a loopback address; the embedded broker has no access control", host)
	}
	return nil
}

func readPort(path string) int {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || port < 1 || port > 65535 {
		return 0
	}
	return port
}
