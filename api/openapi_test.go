package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/api/apitest"
	"github.com/waymarkhq/waymark/rag"
)

var update = flag.Bool("update", false, "rewrite openapi.json")

func TestOpenAPIIsTheCommittedDocument(t *testing.T) {
	got := api.OpenAPI()
	if *update {
		if err := os.WriteFile("openapi.json", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("openapi.json differs; look at the change, then: go test ./api -run OpenAPI -update")
	}
	s := start(t, api.Config{}, apitest.NewWorld())
	a := s.get("/openapi.json").wants(http.StatusOK)
	if !bytes.Equal(a.body, want) || !bytes.Equal(s.server.OpenAPI(), want) {
		t.Error("the server serves another document")
	}
}

// document is the part of the OpenAPI document that the tests look at.
type document struct {
	OpenAPI    string                          `json:"openapi"`
	Paths      map[string]map[string]operation `json:"paths"`
	Components struct {
		Schemas map[string]json.RawMessage `json:"schemas"`
	} `json:"components"`
}

type operation struct {
	ID          string                     `json:"operationId"`
	Responses   map[string]json.RawMessage `json:"responses"`
	RequestBody *struct {
		Content map[string]json.RawMessage `json:"content"`
	} `json:"requestBody"`
}

func readDocument(t *testing.T) document {
	t.Helper()
	var d document
	if err := json.Unmarshal(api.OpenAPI(), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// Every documented call answers, with a status that the document has, and in the documented media type.
func TestEveryDocumentedCallAnswersAsDocumented(t *testing.T) {
	world := apitest.NewWorld()
	world.AddIndexed("articles/a", apitest.Version(1), time.Unix(1, 0), "x")
	world.Messages.Put(apitest.Timeline("articles/a", "m", rag.Revision{Version: 1}, time.Unix(1, 0), rag.StatusAccepted))
	replayed, discarded := world.AddDead("a", 1, time.Unix(1, 0), scan, []byte("x")), world.AddDead("b", 2, time.Unix(1, 0), scan, []byte("x"))
	s := start(t, api.Config{}, world)
	paths := strings.NewReplacer("{message_id}", "m", "documents/{id}", "documents/articles/a", "{id}", replayed)
	bodies := map[string]string{
		"submit-document": `{"text":"x"}`, "ingest": `{"id":"a","text":"x"}`, "put-document": "x", "submit-batch": `{"text":"x"}`,
		"wait-messages": `{"messages":[{"message_id":"m"}],"timeout_seconds":0}`, "replay-dead-letters": `{"reason":"none"}`,
		"discard-dead-letters": `{"reason":"none","why":"old"}`,
	}
	d := readDocument(t)
	if !strings.HasPrefix(d.OpenAPI, "3.1.") {
		t.Errorf("OpenAPI version %q", d.OpenAPI)
	}
	calls := 0
	for path, operations := range d.Paths {
		for method, op := range operations {
			calls++
			target := paths.Replace(path)
			switch op.ID {
			case "search":
				target += "?q=x"
			case "discard-dead-letter":
				target = strings.Replace(target, replayed, discarded, 1)
			}
			types := []string{""}
			if op.RequestBody != nil {
				types = nil
				for t := range op.RequestBody.Content {
					types = append(types, strings.ReplaceAll(t, "*/*", "text/html"))
				}
			}
			for _, contentType := range types {
				var header []string
				if contentType != "" {
					header = []string{"Content-Type", contentType}
				}
				a := s.send(strings.ToUpper(method), target, strings.NewReader(bodies[op.ID]), header...)
				checkDocumented(t, op, a)
				if a.status >= 300 {
					t.Errorf("%s %s: %d %s", method, target, a.status, a.body)
				}
			}
		}
	}
	if calls != 21 {
		t.Errorf("%d calls are documented", calls)
	}
	// And one refusal of each.
	for path, operations := range d.Paths {
		for method, op := range operations {
			checkDocumented(t, op, s.send(strings.ToUpper(method), paths.Replace(path)+"?unknown=1", strings.NewReader(bodies[op.ID])))
		}
	}
}

func checkDocumented(t *testing.T, op operation, a answer) {
	t.Helper()
	raw, ok := op.Responses[strconv.Itoa(a.status)]
	if !ok {
		t.Errorf("%s answers the undocumented status %d: %s", op.ID, a.status, a.body)
		return
	}
	var r struct {
		Content map[string]json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	mt, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	if _, ok := r.Content[mt]; !ok {
		t.Errorf("%s answers %d with the undocumented type %q", op.ID, a.status, mt)
	}
}

// Every kind of problem that the tests of this package meet by its name is documented, and nothing refers to a schema
// that is not there.
func TestTheDocumentIsWhole(t *testing.T) {
	d := readDocument(t)
	text := string(api.OpenAPI())
	for _, ref := range regexp.MustCompile(`#/components/schemas/([A-Za-z]+)`).FindAllStringSubmatch(text, -1) {
		if _, ok := d.Components.Schemas[ref[1]]; !ok {
			t.Errorf("the schema %s is missing", ref[1])
		}
	}
	for name := range d.Components.Schemas {
		if strings.HasPrefix(name, "Error") {
			t.Errorf("the library's own schema %s is documented", name)
		}
	}
	docs := string(serve(mustServer(t), newRequest(http.MethodGet, "/docs", nil)).body)
	kinds := regexp.MustCompile(`urn:waymark:problem:([a-z0-9-]+)`).FindAllStringSubmatch(text, -1)
	var all []string
	for _, k := range kinds {
		all = append(all, k[1])
	}
	slices.Sort(all)
	for _, k := range slices.Compact(all) {
		if !strings.Contains(docs, `id="problem-`+k+`"`) {
			t.Errorf("the documentation page does not explain %s", k)
		}
	}
}

func mustServer(t *testing.T) *api.Server {
	t.Helper()
	server, err := api.New(api.Config{}, apitest.NewWorld().Dependencies())
	if err != nil {
		t.Fatal(err)
	}
	return server
}
