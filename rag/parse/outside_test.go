//go:build unix

package parse

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/external"
	"github.com/waymarkhq/waymark/rag/parse/parsetest"
)

const picture = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"

// withPrograms is a parser with external programs.
func withPrograms(t *testing.T, limits Limits, programs ...external.Config) *Parser {
	t.Helper()
	p, err := New(limits, CacheDir(pdfiumCache), External(programs...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func program(when, script string, types ...string) external.Config {
	return external.Config{Types: types, When: when, Command: []string{"sh", "-c", script}}
}

func TestExternalProgramsReadWhatHasNoText(t *testing.T) {
	p := withPrograms(t, Limits{}, program(external.NoText, `printf 'Read from %s.\n\nMore.\fPage two.' "$WAYMARK_CONTENT_TYPE"`, "image/*", TypePDF))
	scan := parsetest.PDF{Pages: []parsetest.PDFPage{{Image: true}}}.Bytes()
	for name, in := range map[string]Input{"image/png": {Content: []byte(picture), Name: "a.png"}, TypePDF: {Content: scan}} {
		text, err := p.Parse(context.Background(), in)
		if err != nil {
			t.Fatal(err)
		}
		if text.Type != name || text.Body != "Read from "+name+".\n\nMore.\n\nPage two." || len(text.Blocks) != 3 || text.Blocks[1].Page != 1 || text.Blocks[2].Page != 2 || len(text.Warnings) > 0 {
			t.Errorf("%s: %+v", name, text)
		}
	}
	lines, _ := parsetest.Column(60, 760, 11, 80, "Printed.")
	if text, err := p.Parse(context.Background(), Input{Content: parsetest.PDF{Pages: []parsetest.PDFPage{{Lines: lines}}}.Bytes()}); err != nil || text.Body != "Printed." {
		t.Errorf("a document with text: %+v, %v", text, err)
	}
	var e *Error
	if _, err := p.Parse(context.Background(), Input{Content: []byte("ID3\x03\x00\x00\x00\x00\x00\x00")}); !errors.As(err, &e) || e.Reason != rag.ReasonUnsupportedType {
		t.Errorf("audio: %v", err)
	}
	blind := withPrograms(t, Limits{}, program(external.NoText, `true`, TypePDF))
	if _, err := blind.Parse(context.Background(), Input{Content: scan}); !errors.As(err, &e) || e.Reason != rag.ReasonScanWithoutText || !strings.Contains(e.Message, "finds none either") {
		t.Errorf("a program that finds nothing: %v", err)
	}
}

func TestExternalProgramsReadInsteadAndTheirMarkdownHasStructure(t *testing.T) {
	p := withPrograms(t, Limits{}, program(external.Always, `printf '{"format": "text/markdown", "text": "# Rivers\\n\\n- one\\n- two\\n"}'`, TypeHTML))
	text, err := p.Parse(context.Background(), Input{Content: []byte("<!doctype html><p>Not this.")})
	if err != nil {
		t.Fatal(err)
	}
	checkText(t, text)
	if text.Type != TypeHTML || text.Title != "Rivers" || outline(text) != "h1: Rivers\nlist: - one\n- two\n" {
		t.Errorf("%+v\n%s", text, outline(text))
	}
	if other := withPrograms(t, Limits{}); p.Settings() == other.Settings() || other.Settings() != Version {
		t.Errorf("settings %q and %q", p.Settings(), other.Settings())
	}
}

func TestFailuresOfExternalProgramsKeepTheirClass(t *testing.T) {
	in := Input{Content: []byte(picture)}
	var x *external.Error
	for script, want := range map[string]rag.Class{"exit 69": rag.ClassOutage, "exit 1": rag.ClassTransient} {
		if _, err := withPrograms(t, Limits{}, program("", script, "image/png")).Parse(context.Background(), in); !errors.As(err, &x) || x.Class != want {
			t.Errorf("%s: %v", script, err)
		}
	}
	var e *Error
	slow := withPrograms(t, Limits{Time: 50 * time.Millisecond}, program("", "sleep 1000", "image/png"))
	if _, err := slow.Parse(context.Background(), in); !errors.As(err, &e) || e.Reason != rag.ReasonTimeout {
		t.Errorf("a program that hangs: %v", err)
	}
	if _, err := New(Limits{}, External(external.Config{})); err == nil {
		t.Error("a program that is none")
	}
}

// One attachment that a program fails on does not sink the message; a program that is away stops it.
func TestExternalProgramsAndAttachments(t *testing.T) {
	message := Input{Content: []byte(mailHeaders + "Subject: x\r\n" + multi("mixed", "b", part("Content-Type: text/plain", "Words."),
		part("Content-Type: image/png; name=a.png\r\nContent-Transfer-Encoding: base64", base64Lines([]byte(picture)))))}
	for script, want := range map[string]string{"echo From a picture.": "From a picture.", "exit 1": ""} {
		text, err := withPrograms(t, Limits{}, program(external.NoText, script, "image/png")).Parse(context.Background(), message)
		if err != nil || !strings.Contains(text.Body, "Words.") || !strings.Contains(text.Body, want) || (len(text.Warnings) == 0) != (want != "") {
			t.Errorf("%s: %+v, %v", script, text, err)
		}
	}
	var x *external.Error
	if _, err := withPrograms(t, Limits{}, program(external.NoText, "exit 75", "image/png")).Parse(context.Background(), message); !errors.As(err, &x) {
		t.Errorf("a program that is away: %v", err)
	}
}
