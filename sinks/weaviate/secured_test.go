package weaviate

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

// issuer is a provider of OpenID Connect, as far as servers ask for it.
type issuer struct {
	url string
	key *rsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	answer := func(v any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v)
		}
	}
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	i.url = s.URL
	mux.HandleFunc("/.well-known/openid-configuration", answer(map[string]any{
		"issuer": i.url, "jwks_uri": i.url + "/keys", "authorization_endpoint": i.url + "/auth", "token_endpoint": i.url + "/token",
		"id_token_signing_alg_values_supported": []string{"RS256"},
	}))
	encode := base64.RawURLEncoding.EncodeToString
	mux.HandleFunc("/keys", answer(map[string]any{"keys": []any{map[string]string{
		"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig",
		"n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
	}}}))
	return i
}

// token of a user, good until a time.
func (i *issuer) token(t *testing.T, expires time.Time) string {
	t.Helper()
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	text := part(map[string]string{"alg": "RS256", "kid": "1", "typ": "JWT"}) + "." + part(map[string]any{
		"iss": i.url, "aud": "waymark", "sub": "indexer", "iat": time.Now().Add(-time.Hour).Unix(), "exp": expires.Unix(),
	})
	hash := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, hash[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// ownServer starts a server beside the one of the other tests, for one that sets it up or kills it.
func ownServer(t *testing.T, port int, env ...string) *server {
	t.Helper()
	if s := needServer(t); s.binary == "" {
		t.Skip("NOT RUN: the server at " + s.url + " is not ours to set up or to kill")
	}
	s := newServer(realServer.binary, t.TempDir(), port)
	s.env = env
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	return s
}

// A real server takes API keys and tokens of OpenID Connect, by REST and by gRPC. One that is not good any more is an
// outage, in which nothing is written; the next good one ends it.
func TestLogin(t *testing.T) {
	const key = "right-key"
	i := newIssuer(t)
	server := ownServer(t, 18280, "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED=false",
		"AUTHENTICATION_APIKEY_ENABLED=true", "AUTHENTICATION_APIKEY_ALLOWED_KEYS="+key, "AUTHENTICATION_APIKEY_USERS=indexer",
		"AUTHENTICATION_OIDC_ENABLED=true", "AUTHENTICATION_OIDC_ISSUER="+i.url, "AUTHENTICATION_OIDC_CLIENT_ID=waymark",
		"AUTHENTICATION_OIDC_USERNAME_CLAIM=sub")
	good, expired := i.token(t, time.Now().Add(time.Hour)), i.token(t, time.Now().Add(-time.Minute))
	for name, grpc := range map[string]string{"REST": "", "gRPC": server.grpc} {
		t.Run(name, func(t *testing.T) {
			base := Options{URL: server.url, GRPC: grpc, Collection: newCollection(), Model: "test", Dimensions: testDimensions}
			for what, wrong := range map[string]string{"no key": "", "another key": "wrong-key", "an expired token": expired} {
				o := base
				o.APIKey = wrong
				if s, err := Open(t.Context(), o); err == nil {
					s.Close()
					t.Errorf("%s opens", what)
				} else if wrong != "" && strings.Contains(err.Error(), wrong) {
					t.Errorf("%s is told: %v", what, err)
				}
			}
			byKey := base
			byKey.APIKey = key
			s := openStore(t, byKey)
			dropCollections(t, s)
			all := objects(6)
			expectOutcome(t, "by key", s.Upsert(t.Context(), all[:3], nil), sinks.Done)

			var token atomic.Value
			token.Store(good)
			byToken := base
			byToken.Token = func(context.Context) (string, error) {
				if text := token.Load().(string); text != "" {
					return text, nil
				}
				return "", errors.New("no token now")
			}
			s = openStore(t, byToken)
			if err := s.Canary(t.Context()); err != nil {
				t.Error(err)
			}
			for _, bad := range []string{expired, ""} {
				token.Store(bad)
				expectOutcome(t, "without a good token", s.Upsert(t.Context(), all[3:], nil), sinks.Outage)
				if err := s.Canary(t.Context()); err == nil {
					t.Error("the canary passes without a good token")
				}
			}
			token.Store(good)
			if n, err := s.Count(t.Context()); err != nil || n != 3 {
				t.Errorf("%d objects, %v; want 3", n, err)
			}
			expectOutcome(t, "by token", s.Upsert(t.Context(), all[3:], nil), sinks.Done)
			if missing, err := s.Missing(t.Context(), all); err != nil || len(missing) > 0 {
				t.Errorf("missing %v, %v", missing, err)
			}
		})
	}
}

func expectOutcome(t *testing.T, what string, results []sinks.Result, want sinks.Outcome) {
	t.Helper()
	for _, r := range results {
		if r.Outcome != want {
			t.Errorf("%s: %s, %v; want %s", what, r.Outcome, r.Err, want)
		}
	}
}

// terminator speaks TLS for a server that does not, as a proxy in front of it does.
func terminator(t *testing.T, certificate tls.Certificate, protocol, target string) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{protocol}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		l.Close()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			front, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { splice(ctx, front, target) })
		}
	})
	return l.Addr().String()
}

// splice connects two ends until one closes.
func splice(ctx context.Context, front net.Conn, target string) {
	defer front.Close()
	back, err := (&net.Dialer{}).DialContext(ctx, "tcp", target)
	if err != nil {
		return
	}
	defer back.Close()
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{front, back}, {back, front}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			done <- struct{}{}
		}()
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
	front.Close()
	back.Close()
	<-done
}

// Behind TLS a real server is reached by who knows its authority, by REST and gRPC; to others nothing is sent.
func TestTLSToARealServer(t *testing.T) {
	server := needServer(t)
	if server.grpc == "" {
		t.Fatalf("%s is not set", grpcVariable)
	}
	own := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate
	certificate := own.TLS.Certificates[0]
	roots := x509.NewCertPool()
	roots.AddCert(own.Certificate())
	own.Close()
	o := Options{
		URL:  "https://" + terminator(t, certificate, "http/1.1", strings.TrimPrefix(server.url, "http://")),
		GRPC: terminator(t, certificate, "h2", server.grpc), Collection: newCollection(), Model: "test", Dimensions: testDimensions,
		TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}
	s := openStore(t, o)
	dropCollections(t, s)
	all := objects(4)
	expectOutcome(t, "with the authority", s.Upsert(t.Context(), all, nil), sinks.Done)
	if missing, err := s.Missing(t.Context(), all); err != nil || len(missing) > 0 {
		t.Errorf("missing %v, %v", missing, err)
	}
	strange := o
	strange.TLS = nil
	var unknown *tls.CertificateVerificationError
	if _, err := Open(t.Context(), strange); !errors.As(err, &unknown) {
		t.Errorf("without the authority: %v", err)
	}
	other := o
	other.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, ServerName: "elsewhere.example"}
	if _, err := Open(t.Context(), other); !errors.As(err, &unknown) {
		t.Errorf("under another name: %v", err)
	}
	// REST that is trusted does not make gRPC trusted.
	half, err := dialGRPC(o.GRPC, &tls.Config{MinVersion: tls.VersionTLS12}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer half.close()
	trusted := s.grpc
	s.grpc = half
	expectOutcome(t, "by gRPC without the authority", s.Upsert(t.Context(), all, nil), sinks.Outage)
	s.grpc = trusted
}

// Tenants of one collection do not see each other, on a real server.
func TestTenantsAreApart(t *testing.T) {
	server := needServer(t)
	o := Options{URL: server.url, GRPC: server.grpc, Collection: newCollection(), Tenant: "one"}
	one := openStore(t, o)
	dropCollections(t, one)
	o.Tenant = "two"
	two := openStore(t, o)
	all := objects(5)
	expectOutcome(t, "tenant one", one.Upsert(t.Context(), all, nil), sinks.Done)
	expectOutcome(t, "tenant two", two.Upsert(t.Context(), all[:2], nil), sinks.Done)
	if r := two.Remove(t.Context(), "d", rag.Removal{Exact: true, Revision: rag.Revision{Version: 1}}); r.Err != nil {
		t.Error(r.Err)
	}
	for _, c := range []struct {
		s    *Store
		want int64
	}{{one, 5}, {two, 0}} {
		if n, err := c.s.Count(t.Context()); err != nil || n != c.want {
			t.Errorf("tenant %s has %d objects, %v; want %d", c.s.options.Tenant, n, err, c.want)
		}
	}
	if missing, err := one.Missing(t.Context(), all); err != nil || len(missing) > 0 {
		t.Errorf("tenant one misses %v, %v", missing, err)
	}
}
