package token

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain lets this binary be the command that gives tokens: it writes what the file named by its argument holds, and adds
// a line to the file beside it.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "give" {
		os.Exit(give(os.Args[2]))
	}
	os.Exit(m.Run())
}

func give(path string) int {
	log, err := os.OpenFile(path+".runs", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 3
	}
	defer log.Close()
	fmt.Fprintln(log, "run")
	b, err := os.ReadFile(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "nobody is logged in")
		return 1
	}
	fmt.Println(string(b))
	return 0
}

func jwt(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(claims)) + "."
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFileIsReadAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	s := FromFile(path)
	if _, err := s(t.Context()); err == nil {
		t.Error("a file that is not there gave a token")
	}
	for _, text := range []string{"first", " second\n"} {
		write(t, path, text)
		if got, err := s(t.Context()); err != nil || got != strings.TrimSpace(text) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", " \n", "two words", "line\nline", "é", strings.Repeat("x", maxBytes+1)} {
		write(t, path, text)
		got, err := s(t.Context())
		if err == nil {
			t.Errorf("%.20q gave %.20q", text, got)
		} else if len(strings.TrimSpace(text)) > 2 && strings.Contains(err.Error(), strings.TrimSpace(text)) {
			t.Errorf("the error holds the token: %v", err)
		}
	}
}

func TestCommandRunsBeforeTheTokenExpires(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	now := time.Unix(1_800_000_000, 0)
	s := FromCommand([]string{os.Args[0], "give", path}, func() time.Time { return now })
	ask := func(want string) {
		t.Helper()
		if got, err := s(t.Context()); err != nil || got != want {
			t.Fatalf("%q, %v; want %q", got, err, want)
		}
	}
	runs := func() int {
		b, err := os.ReadFile(path + ".runs")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(b), "run")
	}
	if _, err := s(t.Context()); err == nil || !strings.Contains(err.Error(), "nobody is logged in") {
		t.Errorf("a command that fails: %v", err)
	}
	first := jwt(fmt.Sprintf(`{"exp":%d}`, now.Add(100*time.Second).Unix()))
	write(t, path, first)
	ask(first)
	second := jwt(fmt.Sprintf(`{"exp":%d}`, now.Add(300*time.Second).Unix()))
	write(t, path, second)
	now = now.Add(74 * time.Second)
	ask(first)
	if runs() != 2 {
		t.Errorf("%d runs, want the one that failed and one more", runs())
	}
	now = now.Add(2 * time.Second) // less than a quarter is left
	ask(second)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	now = now.Add(200 * time.Second) // the command fails, and the token is still good for 24 seconds
	ask(second)
	now = now.Add(25 * time.Second)
	if got, err := s(t.Context()); err == nil {
		t.Errorf("a token that has expired: %q", got)
	}
}

func TestOpaqueTokenIsKeptAMinute(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	now := time.Unix(1_800_000_000, 0)
	s := FromCommand([]string{os.Args[0], "give", path}, func() time.Time { return now })
	for _, c := range []struct {
		after        time.Duration
		stands, want string
	}{{0, "a", "a"}, {59 * time.Second, "b", "a"}, {2 * time.Second, "b", "b"}} {
		write(t, path, c.stands)
		now = now.Add(c.after)
		if got, err := s(context.Background()); err != nil || got != c.want {
			t.Errorf("after %s: %q, %v; want %q", c.after, got, err, c.want)
		}
	}
}

func TestCommandThatIsNotThere(t *testing.T) {
	if _, err := FromCommand([]string{filepath.Join(t.TempDir(), "nothing")}, time.Now)(t.Context()); err == nil {
		t.Error("a command that is not there gave a token")
	}
}

func FuzzExpiry(f *testing.F) {
	for _, s := range []string{"", "a.b.c", jwt(`{"exp":1}`), jwt(`{"exp":1e300}`), jwt(`{"exp":"1"}`), jwt(`{}`), jwt(`{"exp":1800000000.5}`)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if at := expiry(s); !at.IsZero() && (at.Unix() < 1 || at.Unix() > 1<<40) {
			t.Errorf("%q expires at %s", s, at)
		}
	})
}
