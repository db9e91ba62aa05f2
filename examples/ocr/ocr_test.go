package ocr_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// waymark is the command, built for this test.
func waymark(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "waymark")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../cmd/waymark").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

type parsed struct {
	Type   string `json:"type"`
	Text   string `json:"text"`
	Blocks []struct {
		Page int `json:"page"`
	} `json:"blocks"`
}

// The configuration of the example, as a user runs it: in the project's root.
func TestPicturesAndScansAreRead(t *testing.T) {
	for _, name := range []string{"tesseract", "pdftoppm"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("NOT RUN: no %s on this machine, so no text recognition (Debian: tesseract-ocr, poppler-utils)", name)
		}
	}
	binary := waymark(t)
	for _, c := range []struct {
		file, kind string
		pages      int
		words      []string
	}{
		{"examples/ocr/testdata/notice.png", "image/png", 1, []string{"Notice to mariners", "lighthouse", "northern channel"}},
		{"examples/ocr/testdata/notice-scan.pdf", "application/pdf", 2, []string{"Notice to mariners", "lighthouse", "bicycles without charge"}},
		{"examples/articles/1962-john-f-kennedy.pdf", "application/pdf", 0, []string{"Congress"}}, // it has text: tesseract is not asked
	} {
		cmd := exec.CommandContext(t.Context(), binary, "parse", "--json", "--config", "examples/ocr/waymark.yaml", c.file)
		cmd.Dir = "../.."
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		out, err := cmd.Output()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Errorf("%s: %v: %s", c.file, err, exit.Stderr)
			continue
		}
		var text parsed
		if err := errors.Join(err, json.Unmarshal(out, &text)); err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		last := 0
		for _, b := range text.Blocks {
			last = b.Page
		}
		if text.Type != c.kind || c.pages > 0 && last != c.pages {
			t.Errorf("%s: %s with %d pages", c.file, text.Type, last)
		}
		for _, w := range c.words {
			if !strings.Contains(strings.Join(strings.Fields(text.Text), " "), w) {
				t.Errorf("%s: %q is not in %q", c.file, w, text.Text)
			}
		}
	}
}

// Without tesseract the parser says that it is away, and blames no document.
func TestWithoutTesseractTheParserIsUnavailable(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("NOT RUN: no shell on this machine")
	}
	script, err := filepath.Abs("ocr.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), sh, script)
	cmd.Dir, cmd.Env = t.TempDir(), []string{"PATH=/nowhere", "WAYMARK_CONTENT_TYPE=image/png"}
	var exit *exec.ExitError
	if out, err := cmd.CombinedOutput(); !errors.As(err, &exit) || exit.ExitCode() != 69 || !strings.Contains(string(out), "not installed") {
		t.Errorf("%v: %s", err, out)
	}
}
