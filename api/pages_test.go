package api_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/api/apitest"
)

var links = regexp.MustCompile(`(?:src|href)="([^"]*)"`)

// The pages must work without a network beyond this server, and under their own content policy.
func TestPagesAreSelfContained(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	for _, path := range []string{"/", "/docs"} {
		a := s.get(path).wants(http.StatusOK)
		if ct := a.header.Get("Content-Type"); ct != "text/html; charset=utf-8" {
			t.Errorf("%s: Content-Type %q", path, ct)
		}
		csp := a.header.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", path, csp)
		}
		html := string(a.body)
		for _, inline := range []string{"<style", "style=", " onclick=", " onload=", "<script>", "javascript:"} {
			if strings.Contains(html, inline) {
				t.Errorf("%s has inline %q, which its policy forbids", path, inline)
			}
		}
		for _, l := range links.FindAllStringSubmatch(html, -1) {
			target, _, _ := strings.Cut(l[1], "#")
			switch {
			case target == "": // within the page
				if id := l[1][1:]; !strings.Contains(html, `id="`+id+`"`) {
					t.Errorf("%s: the link %s leads nowhere", path, l[1])
				}
			case !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "//"):
				t.Errorf("%s loads or links %q from elsewhere", path, target)
			default:
				s.get(target).wants(http.StatusOK)
			}
		}
	}
	js := string(s.get("/assets/app.js").wants(http.StatusOK).body)
	for _, unsafe := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("} {
		if strings.Contains(js, unsafe) {
			t.Errorf("the script uses %s: text from documents could become markup", unsafe)
		}
	}
}

func TestAssetsHaveTheirTypes(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	for path, want := range map[string]string{
		"/assets/app.js": "text/javascript", "/assets/app.css": "text/css", "/assets/icon.svg": "image/svg+xml", "/openapi.json": "application/openapi+json",
	} {
		a := s.get(path).wants(http.StatusOK)
		if ct := a.header.Get("Content-Type"); !strings.HasPrefix(ct, want) || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: Content-Type %q", path, ct)
		}
	}
	s.get("/assets/index.html").problem(404, "not-found")
	s.get("/assets/").problem(404, "not-found")
}
