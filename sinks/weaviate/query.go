package weaviate

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/weaviate/weaviate/entities/models"

	"github.com/waymarkhq/waymark/rag"
)

// maxResults is how many objects the server gives at once (QUERY_MAXIMUM_RESULTS).
const maxResults = 10_000

// chunkFields are the properties of a chunk in a query.
var chunkFields = strings.Join([]string{
	propDocumentID, propVersion, propGeneration, propIndex, propCount, propStart, propEnd, propPage, propTitle, propSource,
	propHeading, propText, propMetadata, propParentStart, propParentEnd, propParentText,
}, " ")

// get is a Get query on one collection. The client's builder is not used: it quotes strings as Go does, which is not
// GraphQL for every character.
type get struct {
	collection string
	arguments  []string
	fields     string
}

// get begins a query on the store's collection, at its tenant and consistency level.
func (s *Store) get(fields string, limit int) *get {
	g := &get{collection: s.options.Collection, fields: fields}
	g.argument("limit", strconv.Itoa(limit))
	if s.replicated {
		g.argument("consistencyLevel", s.options.ConsistencyLevel)
	}
	if s.options.Tenant != "" {
		g.argument("tenant", quote(s.options.Tenant))
	}
	return g
}

func (g *get) argument(name, value string) { g.arguments = append(g.arguments, name+": "+value) }

// where adds conditions, all of which must hold.
func (g *get) where(conditions ...string) {
	switch len(conditions) {
	case 0:
	case 1:
		g.argument("where", conditions[0])
	default:
		g.argument("where", "{operator: And, operands: ["+strings.Join(conditions, ", ")+"]}")
	}
}

// nearVector orders by the distance to a vector.
func (g *get) nearVector(v []float32) {
	var b strings.Builder
	b.WriteString("{vector: [")
	for i, x := range v {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatFloat(float64(x), 'g', -1, 32))
	}
	b.WriteString("]}")
	g.argument("nearVector", b.String())
}

func (g *get) String() string {
	return fmt.Sprintf("%s(%s) {%s}", g.collection, strings.Join(g.arguments, ", "), g.fields)
}

// condition compares a property with a value that is already in GraphQL's form.
func condition(property, operator, kind, value string) string {
	return fmt.Sprintf("{path: [%s], operator: %s, %s: %s}", quote(property), operator, kind, value)
}

func conditionDocument(documentID string) string {
	return condition(propDocumentKey, "Equal", "valueText", quote(documentKey(documentID)))
}

func conditionMetadata(pair string) string {
	return condition(propMetadata, "Equal", "valueText", quote(pair))
}

func conditionIDs(ids []string) string { return containsAny("id", ids) }

func containsAny(property string, values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = quote(v)
	}
	return condition(property, "ContainsAny", "valueText", "["+strings.Join(quoted, ",")+"]")
}

// quote writes a string as JSON does, which GraphQL reads.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string
	}
	return string(b)
}

// found is an object of an answer.
type found struct {
	id       string
	chunk    rag.Chunk
	distance float64
	score    float64
}

// ask runs one query.
func (s *Store) ask(ctx context.Context, g *get) ([]found, error) {
	answers, err := s.askAll(ctx, []*get{g})
	if err != nil {
		return nil, err
	}
	return answers[0], nil
}

// askAll runs several queries in one request.
func (s *Store) askAll(ctx context.Context, gets []*get) ([][]found, error) {
	var b strings.Builder
	b.WriteString("{Get {")
	for i, g := range gets {
		fmt.Fprintf(&b, "q%d: %s ", i, g)
	}
	b.WriteString("}}")
	reply, err := s.graphQL(ctx, b.String())
	if err != nil {
		return nil, err
	}
	answer, _ := reply["Get"].(map[string]any)
	out := make([][]found, len(gets))
	for i := range gets {
		list, _ := answer[fmt.Sprintf("q%d", i)].([]any)
		for _, o := range list {
			f, err := decodeFound(o)
			if err != nil {
				return nil, err
			}
			out[i] = append(out[i], f)
		}
	}
	return out, nil
}

// graphQL sends a query; errors inside a success are errors.
func (s *Store) graphQL(ctx context.Context, query string) (map[string]models.JSONObject, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	ctx, after := withRetryAfter(ctx)
	reply, err := s.client.GraphQL().Raw().WithQuery(query).Do(ctx)
	if err != nil {
		return nil, unwrap(err, *after)
	}
	for _, e := range reply.Errors {
		if e != nil {
			return nil, &objectFailure{e.Message}
		}
	}
	return reply.Data, nil
}

func decodeFound(o any) (found, error) {
	properties, ok := o.(map[string]any)
	if !ok {
		return found{}, fmt.Errorf("the answer holds %T, not an object", o)
	}
	var f found
	var err error
	if f.chunk, err = decode(properties); err != nil {
		return found{}, err
	}
	additional, _ := properties["_additional"].(map[string]any)
	f.id, _ = additional["id"].(string)
	f.distance, _ = additional["distance"].(float64)
	if score, ok := additional["score"].(string); ok {
		if f.score, err = strconv.ParseFloat(score, 64); err != nil {
			return found{}, fmt.Errorf("score: %w", err)
		}
	}
	return f, nil
}
