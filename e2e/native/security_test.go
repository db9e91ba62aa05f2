package native

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/e2e/kafkalocal"
)

// needNativeBrokers gives the cluster with its listeners to a test that is about them.
func needNativeBrokers(t *testing.T) *kafkalocal.Cluster {
	t.Helper()
	n, ok := suite.brokers.(nativeBrokers)
	if !ok {
		t.Skipf("NOT RUN: it needs brokers with TLS and logins; %s", suite.brokers)
	}
	return n.c
}

// login is how a user reaches the brokers with a password.
func login(c *kafkalocal.Cluster, user, password string) []string {
	return []string{
		"WAYMARK_KAFKA_BROKERS=" + strings.Join(c.Addrs(kafkalocal.SASL), ","), "WAYMARK_KAFKA_SASL_MECHANISM=SCRAM-SHA-512",
		"WAYMARK_KAFKA_SASL_USERNAME=" + user, "WAYMARK_KAFKA_SASL_PASSWORD=" + password,
	}
}

// A user with a SCRAM password and the rights that the operations page names runs everything; one without rights and one
// with another password are refused with a reason.
func TestLoginAndRights(t *testing.T) {
	needNative(t)
	c := needNativeBrokers(t)
	for _, rights := range [][]string{
		{"--operation", "All", "--topic", "secure", "--resource-pattern-type", "prefixed"},
		{"--operation", "All", "--group", "secure", "--resource-pattern-type", "prefixed"},
	} {
		kafkaTool(t, "", kafkalocal.ACLs, append([]string{"--add", "--force", "--allow-principal", "User:waymark"}, rights...)...)
	}
	p := newPods(t, "secure", login(c, "waymark", users["waymark"])...)
	p.run("all", append([]string{"api"}, workers...)...)
	p.waitReady()
	m := newModel()
	for _, a := range articles(t, 3) {
		p.put(m, a)
	}
	p.check(m)
	for name, env := range map[string][]string{
		"without rights":        login(c, "stranger", users["stranger"]),
		"with another password": login(c, "waymark", "guessed"),
	} {
		mine := p.env
		p.env = append(mine[:len(mine):len(mine)], env...)
		out, err := p.command("topics", "plan")
		p.env = mine
		if err == nil || !strings.Contains(strings.ToLower(string(out)), map[string]string{"without rights": "does not allow this user", "with another password": "auth"}[name]) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if strings.Contains(string(out), users["stranger"]) || strings.Contains(string(out), "guessed") {
			t.Errorf("%s: the password is told:\n%s", name, out)
		}
	}
}

// The brokers are reached by TLS by who knows their authority, and by nobody else.
func TestTLS(t *testing.T) {
	needNative(t)
	c := needNativeBrokers(t)
	ca := filepath.Join(c.Dir, "tls", "ca.pem")
	p := newPods(t, "tls", "WAYMARK_KAFKA_BROKERS="+strings.Join(c.Addrs(kafkalocal.SSL), ","), "WAYMARK_KAFKA_TLS_ENABLED=true",
		"WAYMARK_KAFKA_TLS_CA_FILE="+ca)
	p.run("all", append([]string{"api"}, workers...)...)
	p.waitReady()
	m := newModel()
	for _, a := range articles(t, 3) {
		p.put(m, a)
	}
	p.check(m)
	strange := filepath.Join(t.TempDir(), "ca.pem")
	b, err := os.ReadFile(filepath.Join(c.Dir, "tls", "client.pem"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(strange, b, 0o600); err != nil {
		t.Fatal(err)
	}
	p.env = append(p.env, "WAYMARK_KAFKA_TLS_CA_FILE="+strange)
	if out, err := p.command("topics", "plan"); err == nil || !strings.Contains(string(out), "certificate") {
		t.Errorf("with another authority: %v\n%s", err, out)
	}
}
