package console_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/cmd/waymark/internal/console"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// terminal is a stream of so many columns.
func terminal(w *bytes.Buffer, width int) console.Stream {
	return console.Stream{Writer: w, Width: func() int { return width }}
}

func TestStatusLineIsNotTorn(t *testing.T) {
	var screen bytes.Buffer
	c := console.New(terminal(&screen, 20), terminal(&screen, 20))
	c.SetStatus("working")
	c.SetStatus("working")
	c.Printf("one\n")
	if _, err := c.Err().Write([]byte("two\n")); err != nil {
		t.Fatal(err)
	}
	c.SetStatus("")
	c.Printf("three\n")
	const wipe = "\r\x1b[K"
	want := wipe + "working" + wipe + "one\nworking" + wipe + "two\nworking" + wipe + "three\n"
	if screen.String() != want {
		t.Errorf("got  %q\nwant %q", screen.String(), want)
	}
}

func TestStatusLineIsCutToTheTerminal(t *testing.T) {
	var screen bytes.Buffer
	c := console.New(console.Pipe(&screen), terminal(&screen, 10))
	c.SetStatus("日本語日本語日本語")
	if got := screen.String(); got != "\r\x1b[K日本語日…" {
		t.Errorf("got %q", got)
	}
}

func TestNoStatusWhenPiped(t *testing.T) {
	var out, errs bytes.Buffer
	c := console.New(console.Pipe(&out), console.Pipe(&errs))
	stop := c.Show(func() console.Progress { return console.Progress{Total: 1} }, true)
	c.SetStatus("working")
	c.Printf("one\n")
	stop()
	if out.String() != "one\n" || errs.Len() != 0 {
		t.Errorf("got %q and %q", out.String(), errs.String())
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestWriteErrorsAreKept(t *testing.T) {
	c := console.New(console.Pipe(full{}), console.Pipe(full{}))
	c.Printf("x\n")
	if err := c.OutError(); err == nil || err.Error() != "no space left" {
		t.Errorf("got %v", err)
	}
}

// show waits until the screen holds what it waits for, by drawing into a channel.
type frames chan string

func (f frames) Write(b []byte) (int, error) {
	f <- string(b)
	return len(b), nil
}

func TestShowDrawsAndCleansUp(t *testing.T) {
	screen := make(frames, 100)
	c := console.New(console.Pipe(screen), console.Stream{Writer: screen, Width: func() int { return 40 }})
	n := 0
	stop := c.Show(func() console.Progress { n++; return console.Progress{Total: 9, Done: min(n, 9)} }, true)
	for seen := 0; seen < 2; seen++ {
		select {
		case frame := <-screen:
			if !strings.HasPrefix(frame, "\r\x1b[K") || !strings.Contains(frame, "/9") {
				t.Errorf("frame %q", frame)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("nothing is drawn")
		}
	}
	stop()
	stop()
	var last string
	for len(screen) > 0 {
		last = <-screen
	}
	if last != "\r\x1b[K" {
		t.Errorf("the last thing drawn is %q, want an empty line", last)
	}
}

func TestRenderByWidth(t *testing.T) {
	p := console.Progress{Label: "Ingesting", Total: 1200, Sent: 900, Done: 600, Failed: 3, Elapsed: 83 * time.Second, Note: "waiting"}
	for width, want := range map[int]string{
		0: "", 3: "600", 9: "600/1,200", 12: "600/1,200", 20: "600/1,200  3 failed", 25: "600/1,200  3 failed  1:23",
		34: "600/1,200  3 failed  1:23  waiting",
		46: "#####==...  600/1,200  3 failed  1:23  waiting",
		60: "Ingesting #######===....  600/1,200  3 failed  1:23  waiting",
		99: "Ingesting ####################==========..........  600/1,200  3 failed  1:23  waiting",
	} {
		if got := p.Render(width, true); got != want {
			t.Errorf("%d columns:\ngot  %q\nwant %q", width, got, want)
		}
	}
	unknown := console.Progress{Label: "Ingesting", Sent: 12, Done: 5, Elapsed: 2 * time.Hour}
	if got, want := unknown.Render(80, false), "Ingesting 5  12 sent  2:00:00"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	whole := console.Progress{Total: 4, Sent: 3, Done: 1}
	if got, want := whole.Render(20, false), "██▒▒▒▒░░░  1/4  0:00"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRenderNeverExceedsTheWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1_000_000)
		p := console.Progress{
			Label: rapid.StringMatching(`[a-z日]{0,12}`).Draw(t, "label"), Note: rapid.StringMatching(`[a-z日 ]{0,30}`).Draw(t, "note"),
			Total: n.Draw(t, "total"), Sent: n.Draw(t, "sent"), Done: n.Draw(t, "done"), Failed: n.Draw(t, "failed"),
			Elapsed: time.Duration(n.Draw(t, "elapsed")) * time.Second,
		}
		width := rapid.IntRange(0, 200).Draw(t, "width")
		if got := p.Render(width, rapid.Bool().Draw(t, "ascii")); ansi.StringWidth(got) > width {
			t.Fatalf("%q has %d columns, want at most %d", got, ansi.StringWidth(got), width)
		}
	})
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := console.Count(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}

func TestUTF8(t *testing.T) {
	for _, tc := range []struct {
		all, ctype, lang string
		want             bool
	}{
		{"", "", "", false}, {"", "", "en_US.UTF-8", true}, {"C", "", "en_US.UTF-8", false}, {"", "C.utf8", "C", true},
	} {
		env := map[string]string{"LC_ALL": tc.all, "LC_CTYPE": tc.ctype, "LANG": tc.lang}
		if got := console.UTF8(func(n string) string { return env[n] }); got != tc.want {
			t.Errorf("%+v: got %t", tc, got)
		}
	}
}
