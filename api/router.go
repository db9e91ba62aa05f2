package api

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// router puts the operations on an http.ServeMux. It adds what the mux lacks for this API: ids with slashes in the
// path, problems in place of plain text, and an Allow header that is the same for every answer.
type router struct {
	mux   *http.ServeMux
	paths map[string]*endpoint
	// wrap stands before every operation: authorization and parameter checks.
	wrap func(op *huma.Operation, next http.Handler) http.Handler
}

// endpoint is one path with its methods.
type endpoint struct {
	methods map[string]http.Handler
}

// idPaths are the paths after which everything is one id, and the id's name in the pattern.
func idPaths() map[string]string {
	return map[string]string{"/v1/documents/": "id", "/v1/messages/": "message_id"}
}

func newRouter(wrap func(*huma.Operation, http.Handler) http.Handler) *router {
	rt := &router{mux: http.NewServeMux(), paths: map[string]*endpoint{}, wrap: wrap}
	rt.mux.HandleFunc("/", notFound)
	return rt
}

// Handle registers an operation; for the API library.
func (rt *router) Handle(op *huma.Operation, handler func(huma.Context)) {
	rt.handle(op.Method, op.Path, rt.wrap(op, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler(humago.NewContext(op, r, w))
	})))
}

// handle registers a handler for a path of the mux.
func (rt *router) handle(method, pattern string, h http.Handler) {
	e, ok := rt.paths[pattern]
	if !ok {
		e = &endpoint{methods: map[string]http.Handler{}}
		rt.paths[pattern] = e
		rt.mux.Handle(pattern, e)
	}
	e.methods[method] = h
}

func (rt *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	escaped := r.URL.EscapedPath()
	for prefix, param := range idPaths() {
		rest, ok := strings.CutPrefix(escaped, prefix)
		if !ok || rest == "" {
			continue
		}
		id, err := url.PathUnescape(rest)
		if err != nil {
			problem(kindMalformedRequest, "the path cannot be decoded: %v", err).at("path", param).write(w)
			return
		}
		r.SetPathValue(param, id)
		rt.paths[prefix+"{"+param+"}"].ServeHTTP(w, r)
		return
	}
	// The mux would redirect a path like //v1 to /v1; there is no such path here, nor one with a slash at its end.
	if !strings.HasPrefix(escaped, "/") || path.Clean(escaped) != escaped {
		notFound(w, r)
		return
	}
	rt.mux.ServeHTTP(w, r)
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, ok := e.methods[r.Method]
	if !ok && r.Method == http.MethodHead {
		h, ok = e.methods[http.MethodGet]
	}
	switch {
	case ok:
		h.ServeHTTP(w, r)
	case r.Method == http.MethodOptions:
		w.Header().Set("Allow", e.allow())
		w.WriteHeader(http.StatusNoContent)
	default:
		problem(kindMethodNotAllowed, "the method %s is not one of %s", r.Method, e.allow()).
			with("Allow", e.allow()).write(w)
	}
}

// allow lists the methods of the path.
func (e *endpoint) allow() string {
	all := []string{http.MethodOptions}
	for m := range e.methods {
		all = append(all, m)
		if m == http.MethodGet {
			all = append(all, http.MethodHead)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func notFound(w http.ResponseWriter, r *http.Request) {
	problem(kindNotFound, "there is no path %s", r.URL.Path).at("path", r.URL.Path).write(w)
}

// ServeMux needs a name for the path "/" alone.
const rootPath = "/{$}"
