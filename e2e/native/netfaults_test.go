package native

import (
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Row 9: the connections to one broker after the other are reset in whatever they are doing, and new ones are refused for a
// while, again and again under load.
func TestKafkaConnectionsCut(t *testing.T) {
	needNative(t)
	c := needNativeBrokers(t)
	if _, err := exec.LookPath("iptables"); err != nil {
		t.Skipf("NOT RUN: connections of others cannot be reset here: %v", err)
	}
	p := newPods(t, "kafkacut")
	p.runAll()
	l := p.startLoad(40, 10*time.Millisecond)
	rounds := 2
	if all() {
		rounds = 6
	}
	resets := 0
	for i := range rounds {
		l.await(20)
		broker := 1 + i%c.Nodes
		resets += resetFor(t, suite.brokers.Addrs()[broker-1], 2*time.Second)
	}
	l.await(20)
	p.check(l.end())
	t.Logf("%d packets were answered with a reset", resets)
	if resets == 0 {
		t.Error("no connection was reset: nothing was tested")
	}
}

// resetFor answers everything that is sent to an address with a reset for a while, and counts the packets.
func resetFor(t *testing.T, address string, d time.Duration) int {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	rule := []string{"INPUT", "-i", "lo", "-p", "tcp", "--dport", port, "-j", "REJECT", "--reject-with", "tcp-reset"}
	iptables(t, append([]string{"-I"}, rule...)...)
	pause(d)
	// The packets that a rule has met stand in front of it.
	var packets int
	for line := range strings.Lines(iptables(t, "-L", "INPUT", "-v", "-n", "-x")) {
		if strings.Contains(line, "dpt:"+port+" ") {
			if _, err := fmt.Sscan(line, &packets); err != nil {
				t.Error(err)
			}
		}
	}
	iptables(t, append([]string{"-D"}, rule...)...)
	return packets
}

// iptables changes the rules of the namespace that this suite runs in, and of no other.
func iptables(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "iptables", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("iptables %v: %v\n%s", args, err, out)
	}
	return string(out)
}
