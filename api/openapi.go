package api

import (
	"encoding/json"
	"fmt"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"
)

// apiVersion is the version of the surface, not of the program.
const apiVersion = "1.0.0"

// OpenAPI is the OpenAPI 3.1 document of the API with the default limits.
func OpenAPI() []byte {
	// The operations are described without being called: no dependency is needed but one that the library looks at.
	return newServer(Config{}.withDefaults(), Dependencies{Gatherer: prometheus.NewRegistry()}).OpenAPI()
}

// newAPI makes the library's part: strict parameters, problems, no pages of its own (they load scripts from elsewhere).
func newAPI(rt *router, c Config) huma.API {
	format := huma.Format{Marshal: encodeJSON, Unmarshal: json.Unmarshal}
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	return huma.NewAPI(huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI:    "3.1.0",
			Info:       &huma.Info{Title: "Waymark", Version: apiVersion, Description: describe(c)},
			Components: &huma.Components{Schemas: registry, SecuritySchemes: securitySchemes()},
			Tags: []*huma.Tag{
				{Name: documentsTag, Description: "Submit documents and see what became of them."},
				{Name: messagesTag, Description: "Follow submissions."},
				{Name: lettersTag, Description: "Versions that died: look, replay, discard."},
				{Name: "Search", Description: "Find chunks of what is served."},
				{Name: "Operation", Description: "Health and numbers."},
			},
		},
		Formats:                      map[string]huma.Format{"application/json": format, "json": format},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
		Transformers:                 []huma.Transformer{asProblem},
	}, rt)
}

func securitySchemes() map[string]*huma.SecurityScheme {
	return map[string]*huma.SecurityScheme{"token": {
		Type: "http", Scheme: "bearer",
		Description: "An API token with the scope that the call names; the scope admin includes the others. Not needed where no tokens are configured: the API then listens on loopback only, or its operator said --insecure.",
	}}
}

func describe(c Config) string {
	return lines(
		"Documents in, searchable chunks out. A 202 is a promise: the record is acknowledged by the log.",
		"",
		"Every answer of 400 and above is `application/problem+json` (RFC 9457) with a stable `type`; it names the field or the limit at fault.",
		"",
		fmt.Sprintf("Limits: a body has at most %d bytes, headers %d, path and query %d, a batch %d lines; JSON is nested at most %d deep.",
			c.MaxBodyBytes, c.MaxHeaderBytes, MaxURIBytes, c.MaxBatchLines, MaxJSONDepth))
}

// finishOpenAPI removes what the library adds and nobody uses: its own error type.
func finishOpenAPI(doc *huma.OpenAPI) *huma.OpenAPI {
	delete(doc.Components.Schemas.Map(), "ErrorModel")
	delete(doc.Components.Schemas.Map(), "ErrorDetail")
	return doc
}

func encodeOpenAPI(doc *huma.OpenAPI) []byte {
	b, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("the OpenAPI document cannot be encoded: %v", err)) // a fault of this package, seen by every test
	}
	return append(b, '\n')
}
