package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

const redacted = "REDACTED"

// Secret is a value that is never printed, logged or marshalled; Reveal gives it to whoever must send it.
type Secret string

// Reveal the secret itself.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret: REDACTED, or "" when there is none.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return `"` + s.String() + `"` }

// MarshalText hides the secret from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue hides the secret from logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Scopes of an API token.
const (
	ScopeIngest = "ingest"
	ScopeRead   = "read"
	ScopeAdmin  = "admin"
)

var scopes = []string{ScopeIngest, ScopeRead, ScopeAdmin}

// Token is an API token as the configuration keeps it: its hash, never itself.
type Token struct {
	Name   string
	Scopes []string
	Hash   [sha256.Size]byte
}

// String names the token and its scopes; the hash is not shown.
func (t Token) String() string {
	return t.Name + ":" + strings.Join(t.Scopes, "+") + ":" + redacted
}

// GoString hides the hash from %#v.
func (t Token) GoString() string { return t.String() }

// MarshalText hides the hash from encoders.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

var errTokenForm = errors.New(
	"a token is written name:scopes:sha256, e.g. ci:ingest+read:HEX with HEX from printf %s TOKEN | sha256sum")

// ParseToken reads name:scopes:sha256. Its errors never repeat the text: it may be the token itself by mistake.
func ParseToken(text string) (Token, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 || parts[0] == "" {
		return Token{}, errTokenForm
	}
	t := Token{Name: parts[0]}
	for s := range strings.SplitSeq(parts[1], "+") {
		if !slices.Contains(scopes, s) {
			return Token{}, fmt.Errorf("the scopes of token %q must be of %s, joined by +", t.Name, strings.Join(scopes, ", "))
		}
		if !slices.Contains(t.Scopes, s) {
			t.Scopes = append(t.Scopes, s)
		}
	}
	hash, err := hex.DecodeString(parts[2])
	if err != nil || len(hash) != sha256.Size {
		return Token{}, fmt.Errorf("the hash of token %q is not a SHA-256 of 64 hexadecimal digits", t.Name)
	}
	t.Hash = [sha256.Size]byte(hash)
	return t, nil
}
