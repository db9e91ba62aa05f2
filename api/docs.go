package api

import (
	"cmp"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// docsView is what the documentation page shows.
type docsView struct {
	Title       string
	Version     string
	Description string
	Groups      []docsGroup
	Schemas     []docsSchema
	Problems    []kindInfo
}

type docsGroup struct {
	Name        string
	Description string
	Calls       []docsCall
}

type docsCall struct {
	Method   string
	Path     string
	Scope    string
	Op       *huma.Operation
	Bodies   []docsContent
	Answer   docsResponse
	Problems []kindInfo
}

type docsContent struct {
	Type   string
	Schema docsType
}

type docsResponse struct {
	Status string
	Text   string
	Bodies []docsContent
}

// docsType is the name of a type; Link is the schema's anchor, where it has one.
type docsType struct {
	Text string
	Link string
}

type docsSchema struct {
	Name   string
	Fields []docsField
}

type docsField struct {
	Name     string
	Type     docsType
	Required bool
	Text     string
	Values   string
}

const schemaPrefix = "#/components/schemas/"

func docsPage(doc *huma.OpenAPI) docsView {
	v := docsView{Title: doc.Info.Title, Version: doc.Info.Version, Description: doc.Info.Description, Problems: kindInfos()}
	for _, tag := range doc.Tags {
		g := docsGroup{Name: tag.Name, Description: tag.Description}
		for _, path := range pathOrder(doc) {
			for _, op := range methodsOf(doc.Paths[path]) {
				if slices.Contains(op.Tags, tag.Name) {
					g.Calls = append(g.Calls, docsCallOf(op))
				}
			}
		}
		v.Groups = append(v.Groups, g)
	}
	schemas := doc.Components.Schemas.Map()
	for _, name := range sortedKeys(schemas) {
		v.Schemas = append(v.Schemas, docsSchemaOf(name, schemas[name]))
	}
	return v
}

// pathOrder is the paths of /v1 first.
func pathOrder(doc *huma.OpenAPI) []string {
	paths := sortedKeys(doc.Paths)
	slices.SortStableFunc(paths, func(a, b string) int {
		return cmp.Compare(strings.Index(b, "/v1/"), strings.Index(a, "/v1/"))
	})
	return paths
}

// methodsOf are the operations of a path.
func methodsOf(p *huma.PathItem) []*huma.Operation {
	all := []*huma.Operation{p.Post, p.Put, p.Get, p.Delete}
	return slices.DeleteFunc(all, func(op *huma.Operation) bool { return op == nil })
}

func docsCallOf(op *huma.Operation) docsCall {
	c := docsCall{Method: op.Method, Path: op.Path, Op: op}
	if scope, _ := op.Metadata[scopeKey].(Scope); scope != "" {
		c.Scope = string(scope)
	}
	if op.RequestBody != nil {
		c.Bodies = docsContents(op.RequestBody.Content)
	}
	status := strconv.Itoa(op.DefaultStatus)
	c.Answer = docsResponse{Status: status, Text: op.Responses[status].Description, Bodies: docsContents(op.Responses[status].Content)}
	c.Problems = kindsOf(op)
	return c
}

func docsContents(content map[string]*huma.MediaType) []docsContent {
	var all []docsContent
	for _, t := range sortedKeys(content) {
		all = append(all, docsContent{Type: t, Schema: docsTypeOf(content[t].Schema)})
	}
	return all
}

func docsTypeOf(s *huma.Schema) docsType {
	switch {
	case s == nil:
		return docsType{Text: "any"}
	case s.Ref != "":
		name := strings.TrimPrefix(s.Ref, schemaPrefix)
		return docsType{Text: name, Link: "schema-" + name}
	case s.Type == huma.TypeArray:
		item := docsTypeOf(s.Items)
		return docsType{Text: "array of " + item.Text, Link: item.Link}
	case s.Type == huma.TypeObject:
		if more, ok := s.AdditionalProperties.(*huma.Schema); ok {
			item := docsTypeOf(more)
			return docsType{Text: "map of " + item.Text, Link: item.Link}
		}
		return docsType{Text: "object"}
	case s.Format == "binary":
		return docsType{Text: "bytes"}
	case s.Format == "date-time":
		return docsType{Text: "date-time"}
	}
	return docsType{Text: cmp.Or(s.Type, "any")}
}

func docsSchemaOf(name string, s *huma.Schema) docsSchema {
	d := docsSchema{Name: name}
	for _, field := range sortedKeys(s.Properties) {
		p := s.Properties[field]
		d.Fields = append(d.Fields, docsField{
			Name: field, Type: docsTypeOf(p), Required: slices.Contains(s.Required, field), Text: p.Description, Values: docsValues(p),
		})
	}
	return d
}

func docsValues(s *huma.Schema) string {
	var all []string
	for _, v := range s.Enum {
		if text, ok := v.(string); ok {
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// docsFuncs are what the template needs beside the data.
func docsFuncs() template.FuncMap {
	return template.FuncMap{
		"lower":  strings.ToLower,
		"prefix": func() string { return problemPrefix },
		"kind":   func(k kind) string { return string(k) },
		"reason": http.StatusText,
		// prose makes paragraphs of a description, with `code` in its place.
		"prose": func(text string) []([]string) {
			var all [][]string
			for _, p := range strings.Split(text, "\n\n") {
				all = append(all, strings.Split(p, "`"))
			}
			return all
		},
		"odd":  func(i int) bool { return i%2 == 1 },
		"type": func(s *huma.Schema) docsType { return docsTypeOf(s) },
		"enum": docsValues,
	}
}
