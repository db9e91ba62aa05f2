package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
)

// Scope says what a token may do.
type Scope string

// Scopes. ScopeAdmin includes the other two.
const (
	ScopeIngest Scope = "ingest" // submit and delete documents
	ScopeRead   Scope = "read"   // statuses, dead letters, search, statistics, metrics
	ScopeAdmin  Scope = "admin"  // replay and discard dead letters
)

// Token is an API token as it is stored: never its text, only the SHA-256 of it. Make the text from at least 128 random
// bits; HashToken gives the hash.
type Token struct {
	Name   string // for logs
	SHA256 [sha256.Size]byte
	Scopes []Scope
}

// HashToken is the hash under which a token is stored.
func HashToken(text string) [sha256.Size]byte { return sha256.Sum256([]byte(text)) }

func (t Token) validate() error {
	if t.SHA256 == ([sha256.Size]byte{}) || t.SHA256 == HashToken("") {
		return errors.New("the hash is empty")
	}
	if len(t.Scopes) == 0 {
		return errors.New("it has no scopes")
	}
	for _, s := range t.Scopes {
		if s != ScopeIngest && s != ScopeRead && s != ScopeAdmin {
			return fmt.Errorf("the scope %q is not ingest, read or admin", s)
		}
	}
	return nil
}

func (t Token) has(s Scope) bool {
	return slices.Contains(t.Scopes, s) || slices.Contains(t.Scopes, ScopeAdmin)
}

// authorize checks the caller's token against the scope that a call needs; nil means that the call may go on.
func authorize(tokens []Token, r *http.Request, need Scope) *Problem {
	if len(tokens) == 0 || need == "" {
		return nil
	}
	text, ok := bearer(r)
	if !ok {
		return problem(kindUnauthorized, "this call needs a token: send Authorization: Bearer <token>").
			with("WWW-Authenticate", `Bearer realm="waymark"`)
	}
	// Every token is compared, in constant time, so that the time tells nothing about which one came close.
	hash := HashToken(text)
	var found *Token
	for i := range tokens {
		if subtle.ConstantTimeCompare(hash[:], tokens[i].SHA256[:]) == 1 {
			found = &tokens[i]
		}
	}
	if found == nil {
		return problem(kindUnauthorized, "the token is not known").
			with("WWW-Authenticate", `Bearer realm="waymark", error="invalid_token"`)
	}
	if !found.has(need) {
		return problem(kindForbidden, "the token lacks the scope %s", need).
			with("WWW-Authenticate", fmt.Sprintf(`Bearer realm="waymark", error="insufficient_scope", scope="%s"`, need))
	}
	return nil
}

func bearer(r *http.Request) (string, bool) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, text, ok := strings.Cut(values[0], " ")
	text = strings.TrimSpace(text)
	return text, ok && text != "" && strings.EqualFold(scheme, "Bearer")
}

// CheckListen refuses an address that others can reach when nothing protects the API: neither tokens nor the operator's
// explicit word. addr is host:port; an empty host means every interface. A name counts as loopback only when it is
// "localhost" or below it.
func CheckListen(addr string, tokens []Token, insecure bool) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("api.listen %q is not host:port: %w", addr, err)
	}
	if len(tokens) > 0 || insecure || loopbackHost(host) {
		return nil
	}
	return fmt.Errorf("api.listen %s can be reached by others: configure api.tokens, or say --insecure", addr)
}

// loopbackHost reports whether a host name or address always means this machine.
func loopbackHost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	if zone := strings.IndexByte(host, '%'); zone >= 0 {
		host = host[:zone]
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// hostOf is the host of a Host header, without its port and brackets.
func hostOf(header string) string {
	if host, _, err := net.SplitHostPort(header); err == nil {
		return host
	}
	return strings.Trim(header, "[]")
}
