package kafkalocal

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
)

// signer signs tokens.
type signer struct{ key *rsa.PrivateKey }

func newSigner(t *testing.T) signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return signer{key}
}

// keys writes the set of keys that tells who has signed.
func (s signer) keys(t *testing.T) string {
	t.Helper()
	encode := base64.RawURLEncoding.EncodeToString
	b, err := json.Marshal(map[string]any{"keys": []any{map[string]string{
		"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig", "n": encode(s.key.N.Bytes()), "e": encode(big.NewInt(int64(s.key.E)).Bytes()),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// token for a user and an audience, good for a while.
func (s signer) token(user, audience string, life time.Duration) (string, error) {
	text := ""
	for _, v := range []map[string]any{
		{"alg": "RS256", "kid": "1"},
		{"iss": TokenIssuer, "sub": user, "aud": audience, "iat": time.Now().Add(-time.Hour).Unix(), "exp": time.Now().Add(life).Unix()},
	} {
		b, err := json.Marshal(v)
		if err != nil {
			return "", err
		}
		text += base64.RawURLEncoding.EncodeToString(b) + "."
	}
	hash := sha256.Sum256([]byte(strings.TrimSuffix(text, ".")))
	signature, err := rsa.SignPKCS1v15(rand.Reader, s.key, crypto.SHA256, hash[:])
	return text + base64.RawURLEncoding.EncodeToString(signature), err
}

// securedBroker is a node with tokens and rights; waymark may use the topics and groups that begin with its name.
func securedBroker(t *testing.T, r Release, keys string) *Cluster {
	t.Helper()
	ctx := within(t, time.Minute)
	c, err := New(ctx, Options{Release: r, Dir: filepath.Join(t.TempDir(), "kafka"), Users: map[string]string{"admin": "admin-secret", "waymark": "waymark-secret"}, Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Clean(); err != nil {
			t.Error(err)
		}
	})
	if err := c.Start(ctx); err != nil {
		log, _ := os.ReadFile(c.LogFile(1))
		t.Fatalf("%v\n%s", err, log[max(0, len(log)-4000):])
	}
	return c
}

// allow gives rights to a user.
func allow(t *testing.T, c *Cluster, user string, rights ...string) {
	t.Helper()
	args := append([]string{"--bootstrap-server", c.Addr(1, Plaintext), "--add", "--force", "--allow-principal", "User:" + user}, rights...)
	if out, err := c.Release.Tool(within(t, time.Minute), ACLs, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// A real broker takes signed tokens. A connection outlives its first token, because a new one is asked for in time; what is
// signed by others, for others or was good once is refused, and never told.
func TestTokensOnARealBroker(t *testing.T) {
	r := release(t)
	mine, stranger := newSigner(t), newSigner(t)
	c := securedBroker(t, r, mine.keys(t))
	allow(t, c, "waymark", "--operation", "All", "--topic", "waymark", "--resource-pattern-type", "prefixed")
	var asked atomic.Int64
	config := func(token func(context.Context) (string, error)) kafka.Config {
		return kafka.Config{Brokers: c.Addrs(SASL), SASL: &kafka.SASL{Mechanism: kafka.SASLOAuthBearer, Token: token}}
	}
	const life = 4 * time.Second
	cfg := config(func(context.Context) (string, error) {
		asked.Add(1)
		return mine.token("waymark", TokenAudience, life)
	})
	ctx := within(t, time.Minute)
	spec := kafka.TopicSpec{Name: "waymark.tokens", Partitions: 1, Replication: 1}
	if _, err := kafka.Apply(ctx, cfg, []kafka.TopicSpec{spec}); err != nil {
		t.Fatal(err)
	}
	p, err := kafka.NewProducer(cfg, kafka.ProducerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	before, sent := asked.Load(), 0
	every := time.NewTicker(200 * time.Millisecond)
	defer every.Stop()
	for end := time.Now().Add(2 * life); time.Now().Before(end); <-every.C {
		if _, _, err := p.SendSync(ctx, kafka.Record{Topic: spec.Name, Value: fmt.Append(nil, sent)}); err != nil {
			t.Fatalf("after %d records and %d tokens: %v", sent, asked.Load()-before, err)
		}
		sent++
	}
	if asked.Load() == before {
		t.Error("no second token was asked for while the first one expired")
	}
	if got := kafkatest.ReadAll(t, cfg, spec.Name); len(got) != sent {
		t.Errorf("%d records of %d", len(got), sent)
	}
	for what, give := range map[string]func() (string, error){
		"signed by a stranger":     func() (string, error) { return stranger.token("waymark", TokenAudience, life) },
		"for another audience":     func() (string, error) { return mine.token("waymark", "elsewhere", life) },
		"one that was good before": func() (string, error) { return mine.token("waymark", TokenAudience, -time.Minute) },
		"none at all":              func() (string, error) { return "", fmt.Errorf("nobody is logged in") },
	} {
		text, _ := give()
		reader, err := kafka.NewReader(config(func(context.Context) (string, error) { return give() }))
		if err == nil {
			_ = reader.Close()
			t.Errorf("%s: accepted", what)
		} else if text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%s: the token is told: %v", what, err)
		} else {
			t.Logf("%s: %v", what, err)
		}
	}
}
