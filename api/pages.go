package api

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed web
var webFiles embed.FS

// pagePolicy is the content policy of the pages: everything comes from this server, nothing is inline.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// registerPages adds the web page, the documentation and what they load. They hold no data: what they show they ask the
// API for, with the caller's token.
func registerPages(rt *router, openAPI, docs func() []byte) {
	rt.handle(http.MethodGet, "/openapi.json", asset("application/openapi+json", openAPI))
	rt.handle(http.MethodGet, "/docs", page(docs))
	web, err := fs.Sub(webFiles, "web")
	if err != nil {
		panic(err) // the folder is compiled in
	}
	rt.handle(http.MethodGet, rootPath, page(webFile(web, "index.html")))
	for _, name := range []string{"app.css", "app.js", "docs.css", "icon.svg"} {
		rt.handle(http.MethodGet, "/assets/"+name, asset(mime.TypeByExtension(path.Ext(name)), webFile(web, name)))
	}
}

func webFile(web fs.FS, name string) func() []byte {
	b, err := fs.ReadFile(web, name)
	if err != nil {
		panic(err) // the file is compiled in
	}
	return func() []byte { return b }
}

func page(content func() []byte) http.Handler {
	next := asset("text/html; charset=utf-8", content)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", pagePolicy)
		next.ServeHTTP(w, r)
	})
}

func asset(contentType string, content func() []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "no-cache")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content()))
	})
}

// renderDocs makes the documentation page from the OpenAPI document. It needs no script.
func renderDocs(doc *huma.OpenAPI) []byte {
	t := template.Must(template.New("docs.tmpl").Funcs(docsFuncs()).ParseFS(webFiles, "web/docs.tmpl"))
	var out bytes.Buffer
	if err := t.Execute(&out, docsPage(doc)); err != nil {
		panic(fmt.Sprintf("the documentation page cannot be rendered: %v", err)) // a fault of this package, seen by every test
	}
	return out.Bytes()
}
