package api

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// call describes one operation: what the OpenAPI document says, and what stands before its handler.
type call struct {
	id          string
	method      string
	path        string
	tag         string
	summary     string
	description string
	scope       Scope // "": open to everybody
	status      int   // of success
	// slow calls bound their own time; all others have Config.ReadTimeout.
	slow bool
	// body are the request's media types with an example of their type; nil means bytes.
	body map[string]any
	// answer replaces the media type of the answer; nil: JSON of the output's body.
	answer map[string]*huma.MediaType
	// problems that this call can answer with, beside those that every call can.
	problems []kind
}

// everyProblem are the kinds that any call can answer with.
func everyProblem(c call) []kind {
	kinds := []kind{kindMalformedRequest, kindForbiddenHost, kindMethodNotAllowed, kindInvalidParameter, kindURITooLong, kindHeadersTooLarge, kindInternal}
	if c.scope != "" {
		kinds = append(kinds, kindUnauthorized, kindForbidden)
	}
	if c.method != http.MethodGet {
		kinds = append(kinds, kindCrossOrigin)
	}
	if c.body != nil {
		kinds = append(kinds, kindTooLarge, kindUnsupportedType, kindRequestTimeout, kindOverloaded)
	}
	return kinds
}

// What an operation's metadata hold.
const (
	scopeKey = "scope"
	slowKey  = "slow"
	kindsKey = "kinds" // of the problems that it answers with
)

// register adds an operation to the routes and to the OpenAPI document.
func register[I, O any](api huma.API, c call, handler func(context.Context, *I) (*O, error)) {
	op := huma.Operation{
		OperationID: c.id, Method: c.method, Path: c.path, Tags: []string{c.tag}, Summary: c.summary,
		Description: c.description, DefaultStatus: c.status, Metadata: map[string]any{scopeKey: c.scope, slowKey: c.slow, kindsKey: append(everyProblem(c), c.problems...)},
	}
	if c.scope != "" {
		op.Security = []map[string][]string{{"token": {string(c.scope)}}}
	} else {
		op.Security = []map[string][]string{}
	}
	huma.Register(api, op, handler)

	// The document is completed after the registration: a request body that the library knew of it would read itself,
	// without this package's limits.
	doc := api.OpenAPI()
	registered := operation(doc.Paths[c.path], c.method)
	registered.Responses = responses(registered, c, doc.Components.Schemas)
	if c.body != nil {
		registered.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{}}
		for mt, example := range c.body {
			registered.RequestBody.Content[mt] = &huma.MediaType{Schema: bodySchema(doc.Components.Schemas, example)}
		}
	}
}

func bodySchema(schemas huma.Registry, example any) *huma.Schema {
	if example == nil {
		return &huma.Schema{Type: huma.TypeString, Format: "binary"}
	}
	return schemas.Schema(reflect.TypeOf(example), true, "")
}

// operation is the one with a method.
func operation(p *huma.PathItem, method string) *huma.Operation {
	switch method {
	case http.MethodPost:
		return p.Post
	case http.MethodPut:
		return p.Put
	case http.MethodDelete:
		return p.Delete
	}
	return p.Get
}

// responses are the answer of success and one entry per status of a problem, naming the types.
func responses(op *huma.Operation, c call, schemas huma.Registry) map[string]*huma.Response {
	ok := op.Responses[strconv.Itoa(c.status)]
	if c.answer != nil {
		ok.Content = c.answer
	}
	if len(ok.Headers) == 0 {
		ok.Headers = nil
	}
	all := map[string]*huma.Response{strconv.Itoa(c.status): ok}
	schema := schemas.Schema(reflect.TypeFor[Problem](), true, "")
	for _, i := range kindsOf(op) {
		status := strconv.Itoa(i.Status)
		r, found := all[status]
		if !found {
			r = &huma.Response{Content: map[string]*huma.MediaType{"application/problem+json": {Schema: schema}}}
			all[status] = r
		} else {
			r.Description += "\n"
		}
		r.Description += "`" + problemPrefix + string(i.Kind) + "`: " + i.Title + "."
	}
	return all
}

// kindsOf are the problems that an operation answers with, in the order of their status.
func kindsOf(op *huma.Operation) []kindInfo {
	kinds, _ := op.Metadata[kindsKey].([]kind)
	return slices.DeleteFunc(kindInfos(), func(i kindInfo) bool { return !slices.Contains(kinds, i.Kind) })
}

// before stands before every operation: it authorizes the caller and judges what the library would forgive in
// parameters (doubled ones, bytes that are not UTF-8). The work that follows ends with a forced shutdown.
func (s *Server) before(op *huma.Operation, next http.Handler) http.Handler {
	scope, _ := op.Metadata[scopeKey].(Scope)
	slow, _ := op.Metadata[slowKey].(bool)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if x := exchangeOf(r.Context()); x != nil {
			x.label = op.OperationID
		}
		p := authorize(s.cfg.Tokens, r, scope)
		if p == nil {
			p = checkParameters(op, r)
		}
		if p != nil {
			p.write(w)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		if !slow {
			ctx, cancel = context.WithTimeout(r.Context(), s.cfg.ReadTimeout)
		}
		defer cancel()
		defer context.AfterFunc(s.killed, cancel)()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func checkParameters(op *huma.Operation, r *http.Request) *Problem {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return problem(kindMalformedRequest, "the query string cannot be decoded: %v", err).at("query", "")
	}
	for name, values := range query {
		if !utf8.ValidString(name) || slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) }) {
			return problem(kindMalformedRequest, "the parameter is not valid UTF-8").at("query", name)
		}
		if len(values) > 1 && !repeatable(op, name) {
			return problem(kindMalformedRequest, "the parameter is there %d times", len(values)).at("query", name)
		}
	}
	for _, p := range op.Parameters {
		if p.In == "header" && len(r.Header.Values(p.Name)) > 1 {
			return problem(kindMalformedRequest, "the header is there %d times", len(r.Header.Values(p.Name))).at("header", p.Name)
		}
	}
	return nil
}

func repeatable(op *huma.Operation, name string) bool {
	return slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool {
		return p.In == "query" && p.Name == name && p.Explode != nil && *p.Explode
	})
}

// lines joins the lines of a description.
func lines(l ...string) string { return strings.Join(l, "\n") }
