package kafkalocal

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A test without Java: what the nodes are told.
func TestProperties(t *testing.T) {
	for name, tc := range map[string]struct {
		options Options
		node    int
		has     []string
		hasNot  []string
	}{
		"one node": {Options{Nodes: 1, Port: 20000}, 1,
			[]string{"node.id=1", "controller.quorum.voters=1@127.0.0.1:20001", "offsets.topic.replication.factor=1", "min.insync.replicas=1",
				"listeners=PLAINTEXT://127.0.0.1:20000,CONTROLLER://127.0.0.1:20001"},
			[]string{"authorizer", "ssl.keystore"}},
		"the third of three": {Options{Nodes: 3, Port: 20000}, 3,
			[]string{"node.id=3", "voters=1@127.0.0.1:20001,2@127.0.0.1:20005,3@127.0.0.1:20009", "min.insync.replicas=2",
				"listeners=PLAINTEXT://127.0.0.1:20008"}, nil},
		"security": {Options{Nodes: 1, Port: 20000, TLS: true, Users: map[string]string{"a": `p"q`}}, 1,
			[]string{"SSL://127.0.0.1:20003", "SASL_PLAINTEXT://127.0.0.1:20002", "authorizer.class.name", `user_a="p\"q"`}, nil},
		"tokens": {Options{Nodes: 1, Port: 20000, Keys: "/keys.json", Users: map[string]string{"a": "b"}}, 1,
			[]string{"SCRAM-SHA-512,PLAIN,OAUTHBEARER", "jwks.endpoint.url=file:///keys.json", "expected.audience=kafka"}, nil},
		"properties of the caller win": {Options{Nodes: 1, Port: 20000, Props: map[string]string{"min.insync.replicas": "7"}}, 1,
			[]string{"min.insync.replicas=7"}, []string{"min.insync.replicas=1"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := (&Cluster{Options: tc.options}).properties(tc.node)
			for _, want := range tc.has {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
			for _, no := range tc.hasNot {
				if strings.Contains(text, no) {
					t.Errorf("%q in\n%s", no, text)
				}
			}
		})
	}
}

// The certificates are such that a client with the authority and one of its own gets a connection, and others do not.
func TestCertificates(t *testing.T) {
	dir := t.TempDir()
	if err := writeTLS(dir); err != nil {
		t.Fatal(err)
	}
	load := func(certFile, keyFile string) tls.Certificate {
		t.Helper()
		c, err := tls.LoadX509KeyPair(filepath.Join(dir, certFile), filepath.Join(dir, keyFile))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	pool := x509.NewCertPool()
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil || !pool.AppendCertsFromPEM(ca) {
		t.Fatalf("the authority: %v", err)
	}
	server := &tls.Config{Certificates: []tls.Certificate{load("server.pem", "server.pem")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	shake := func(client *tls.Config) error {
		a, b := net.Pipe()
		defer a.Close()
		defer b.Close()
		done := make(chan error, 1)
		go func() { done <- tls.Server(a, server).HandshakeContext(t.Context()); a.Close() }()
		err := tls.Client(b, client).HandshakeContext(t.Context())
		b.Close()
		return errors.Join(err, <-done)
	}
	mine := []tls.Certificate{load("client.pem", "client.key")}
	if err := shake(&tls.Config{RootCAs: pool, ServerName: "127.0.0.1", Certificates: mine, MaxVersion: tls.VersionTLS12}); err != nil {
		t.Errorf("with the authority and a certificate: %v", err)
	}
	if err := shake(&tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1", Certificates: mine, MaxVersion: tls.VersionTLS12}); err == nil {
		t.Error("without the authority a connection was made")
	}
	if err := shake(&tls.Config{RootCAs: pool, ServerName: "127.0.0.1", MaxVersion: tls.VersionTLS12}); err == nil {
		t.Error("without a certificate a connection was made")
	}
}

// answering listens like a broker and gives one response to whatever comes.
func answering(t *testing.T, body []byte) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = c.Read(make([]byte, 1024))
		_, _ = c.Write(body) // the client may have gone
	}()
	return l.Addr().String()
}

func framed(body ...byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func TestBrokersReadsMetadata(t *testing.T) {
	good := framed(0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2,
		0, 0, 0, 7, 0, 1, 'h', 0, 0, 0, 9, 0xff, 0xff,
		0, 0, 0, 8, 0, 1, 'h', 0, 0, 0, 9, 0, 1, 'r')
	ids, err := Brokers(t.Context(), answering(t, good))
	if err != nil || !slices.Equal(ids, []int32{7, 8}) {
		t.Errorf("brokers %v, %v", ids, err)
	}
	for name, bad := range map[string][]byte{
		"an end in the middle": framed(0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 7, 0, 1),
		"not Kafka":            []byte("HTTP/1.1 400 Bad Request\r\n"),
		"nothing":              nil,
	} {
		if ids, err := Brokers(t.Context(), answering(t, bad)); err == nil {
			t.Errorf("%s: brokers %v", name, ids)
		}
	}
}

func TestOpenWithoutCluster(t *testing.T) {
	if _, err := Open(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open: %v", err)
	}
	if _, err := New(t.Context(), Options{Dir: t.TempDir(), Nodes: 2}); err == nil {
		t.Error("two nodes were taken")
	}
}

// A node that has just been started has no command line yet; one that has ended may have left its id to another process.
func TestANodeIsKnownByWhenItBegan(t *testing.T) {
	c := &Cluster{Options: Options{Dir: t.TempDir(), Nodes: 1}}
	if err := os.MkdirAll(c.file(node(1)), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	nameless := exec.CommandContext(ctx, "bash", "-c", "exec -a '' sleep 600")
	if err := nameless.Start(); err != nil {
		t.Fatal(err)
	}
	pid := nameless.Process.Pid
	if err := c.note(1, pid); err != nil {
		t.Fatal(err)
	}
	if got := c.Pid(1); got != pid {
		t.Errorf("a process without a command line: id %d, want %d", got, pid)
	}
	if err := os.WriteFile(c.file(node(1), "pid"), fmt.Appendf(nil, "%d 1\n", os.Getpid()), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := c.Pid(1); got != 0 {
		t.Errorf("another process with the id of the node that was: id %d, want 0", got)
	}
	if err := c.note(1, pid); err != nil {
		t.Fatal(err)
	}
	end()
	_ = nameless.Wait() // it was killed
	if got := c.Pid(1); got != 0 {
		t.Errorf("a process that has ended: id %d, want 0", got)
	}
}
