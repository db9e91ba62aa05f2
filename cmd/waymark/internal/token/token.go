// Package token gives bearer tokens that others renew: from a file, or from a command.
package token

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const (
	// maxBytes bounds what a file or a command may give.
	maxBytes = 64 << 10
	// commandTimeout is how long a command may take.
	commandTimeout = 10 * time.Second
	// keepUnknown is how long a command's token is used that does not say when it expires.
	keepUnknown = time.Minute
)

// Source gives the token that is valid now. It may be called from several goroutines at once; its errors never hold a token.
type Source func(context.Context) (string, error)

// FromFile reads the file anew for every token: what renews it replaces the file. White space around the token does not count.
func FromFile(path string) Source {
	return func(context.Context) (string, error) {
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("reading the token: %w", err)
		}
		defer f.Close()
		b, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
		if err != nil {
			return "", fmt.Errorf("reading the token: %w", err)
		}
		text, err := check(b)
		if err != nil {
			return "", fmt.Errorf("the token in %s %w", path, err)
		}
		return text, nil
	}
}

// FromCommand runs a command without a shell, which writes the token to its standard output within 10 seconds. The token is
// used again until a tenth of its life is left, if it is a JWT that says when it expires, and for a minute otherwise. Where
// the command fails, the token before is used for as long as it is valid.
func FromCommand(argv []string, now func() time.Time) Source {
	c := &command{argv: argv, now: now}
	return c.token
}

// command remembers its last token.
type command struct {
	argv []string
	now  func() time.Time

	mu      sync.Mutex
	last    string
	renew   time.Time
	expires time.Time
}

func (c *command) token(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if c.last != "" && now.Before(c.renew) {
		return c.last, nil
	}
	text, err := c.run(ctx)
	if err != nil {
		if c.last != "" && now.Before(c.expires) {
			return c.last, nil
		}
		return "", err
	}
	c.last, c.expires = text, expiry(text)
	if c.expires.IsZero() {
		c.expires = now.Add(keepUnknown)
		c.renew = c.expires
		return text, nil
	}
	c.renew = c.expires.Add(-c.expires.Sub(now) / 4)
	return text, nil
}

func (c *command) run(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	cmd.WaitDelay = time.Second // a child that keeps the pipe open does not hold us
	var out, errOut limited
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		if said := bytes.TrimSpace(errOut.b); len(said) > 0 {
			err = fmt.Errorf("%w: %s", err, said[:min(len(said), 500)])
		}
		return "", fmt.Errorf("the command for the token, %s: %w", c.argv[0], err)
	}
	text, err := check(out.b)
	if err != nil {
		return "", fmt.Errorf("the token of the command %s %w", c.argv[0], err)
	}
	return text, nil
}

// limited keeps the beginning of what is written, one byte more than a token may have.
type limited struct{ b []byte }

// Write takes everything.
func (l *limited) Write(p []byte) (int, error) {
	l.b = append(l.b, p[:min(len(p), maxBytes+1-len(l.b))]...)
	return len(p), nil
}

// check gives the token without white space around it. Its errors go on after the token's name.
func check(b []byte) (string, error) {
	text := string(bytes.TrimSpace(b))
	switch {
	case len(b) > maxBytes:
		return "", fmt.Errorf("has more than %d bytes", maxBytes)
	case text == "":
		return "", errors.New("is empty")
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return "", errors.New("has white space or other characters that no token has")
	}
	return text, nil
}

// expiry of a JWT; zero for what is none, or does not say. Nothing is verified: that is for whoever takes the token.
func expiry(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Expires *float64 `json:"exp"`
	}
	if json.Unmarshal(b, &claims) != nil || claims.Expires == nil || *claims.Expires < 1 || *claims.Expires > 1<<40 {
		return time.Time{}
	}
	return time.Unix(int64(*claims.Expires), 0)
}
