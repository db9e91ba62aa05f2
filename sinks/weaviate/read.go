package weaviate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/sinks/internal/terms"
)

const (
	// neighbours of its own vector among which an object is looked for.
	neighbours = 8
	// sameVector is the cosine distance up to which a vector is the one that was written: float32 rounding.
	sameVector = 1e-4
	// readBatch is how many objects one request looks for.
	readBatch = 25
	// scanPage is how many objects a scan asks for at once.
	scanPage = 500
)

// Missing implements sinks.Sink. It searches for each object's vector as a reader would; where more objects have the same
// vector than a search gives, it searches again among the object alone, which the index answers only if it is in it. What
// the vector index has is asked for by filters and by a word too: a server that was killed loses the ends of its indexes
// one by one.
func (s *Store) Missing(ctx context.Context, objects []sinks.Object) ([]int, error) {
	return s.missing(ctx, objects, true)
}

// Torn implements sinks.Forgetful. The server has the properties of an object before its vector, so that one whose writing
// was cut short is found by its id.
func (s *Store) Torn(ctx context.Context, objects []sinks.Object) ([]int, error) {
	var there []sinks.Object
	var indexes, none []int
	for batch := range slices.Chunk(s.validIndexes(objects, &none), maxBatch) {
		ids := make([]string, len(batch))
		for n, i := range batch {
			ids[n] = objects[i].ID
		}
		g := s.get("_additional {id}", len(ids))
		g.where(conditionIDs(ids))
		answer, err := s.ask(ctx, g)
		if err != nil {
			return nil, fmt.Errorf("look for objects: %w", err)
		}
		for _, i := range batch {
			if slices.ContainsFunc(answer, func(f found) bool { return f.id == objects[i].ID }) {
				there, indexes = append(there, objects[i]), append(indexes, i)
			}
		}
	}
	if len(there) == 0 {
		return nil, nil
	}
	missing, err := s.Missing(ctx, there)
	torn := make([]int, len(missing))
	for n, j := range missing {
		torn[n] = indexes[j]
	}
	return torn, err
}

// missing are the objects that are not found. Where others are in the index, one that is found alone does not count as found.
func (s *Store) missing(ctx context.Context, objects []sinks.Object, others bool) ([]int, error) {
	var missing, crowded, near, alone []int
	err := s.nearest(ctx, objects, s.validIndexes(objects, &missing), neighbours, false, func(i int, answer []found) {
		switch {
		case others && holds(answer, objects[i].ID) && len(answer) == 1:
			alone = append(alone, i)
		case holds(answer, objects[i].ID):
			near = append(near, i)
		case len(answer) == neighbours && answer[neighbours-1].distance <= sameVector:
			crowded = append(crowded, i)
		default:
			missing = append(missing, i)
		}
	})
	if err == nil {
		err = s.nearest(ctx, objects, crowded, 1, true, func(i int, answer []found) {
			if holds(answer, objects[i].ID) {
				near = append(near, i)
			} else {
				missing = append(missing, i)
			}
		})
	}
	if err == nil {
		near, missing, err = s.linked(ctx, objects, alone, near, missing)
	}
	if err == nil {
		var lost []int
		lost, err = s.unindexed(ctx, objects, near)
		missing = append(missing, lost...)
	}
	if err != nil {
		return nil, fmt.Errorf("read back: %w", err)
	}
	slices.Sort(missing)
	return missing, nil
}

// validIndexes leaves out objects that can never have been stored, which are missing.
func (s *Store) validIndexes(objects []sinks.Object, missing *[]int) []int {
	var valid []int
	for i := range objects {
		if sinks.Validate(objects[i], s.options.Dimensions) != nil {
			*missing = append(*missing, i)
			continue
		}
		valid = append(valid, i)
	}
	return valid
}

// holds tells whether an answer has the object, with the vector that was asked for.
func holds(answer []found, id string) bool {
	return slices.ContainsFunc(answer, func(f found) bool { return f.id == id && f.distance <= sameVector })
}

// nearest searches for the vectors of the objects with the given indexes, among all objects or each alone.
func (s *Store) nearest(ctx context.Context, objects []sinks.Object, indexes []int, limit int, alone bool, each func(int, []found)) error {
	for batch := range slices.Chunk(indexes, readBatch) {
		gets := make([]*get, len(batch))
		for n, i := range batch {
			gets[n] = s.get("_additional {id distance}", limit)
			gets[n].nearVector(objects[i].Vector)
			if alone {
				gets[n].where(conditionIDs([]string{objects[i].ID}))
			}
		}
		answers, err := s.askAll(ctx, gets)
		if err != nil {
			return err
		}
		for n, i := range batch {
			each(i, answers[n])
		}
	}
	return nil
}

// linked decides about objects that a search found alone. In a store that has others such an object has no links to them: its
// insertion was cut short. It counts as missing, because searches may begin there, and find nothing else.
func (s *Store) linked(ctx context.Context, objects []sinks.Object, alone, near, missing []int) (_, _ []int, err error) {
	if len(alone) == 0 {
		return near, missing, nil
	}
	count, err := s.Count(ctx)
	if err != nil {
		return nil, nil, err
	}
	if count < neighbours {
		return append(near, alone...), missing, nil
	}
	// They may have been the first ones then.
	err = s.nearest(ctx, objects, alone, neighbours, false, func(i int, answer []found) {
		if len(answer) > 1 && holds(answer, objects[i].ID) {
			near = append(near, i)
		} else {
			missing = append(missing, i)
		}
	})
	return near, missing, err
}

// unindexed are those of the objects with the given indexes that a filter or a word does not find.
func (s *Store) unindexed(ctx context.Context, objects []sinks.Object, indexes []int) (lost []int, err error) {
	for batch := range slices.Chunk(indexes, readBatch) {
		gets := []*get{s.filtered(objects, batch)}
		words := make([]int, len(batch)) // the query of each, or 0
		for n, i := range batch {
			if g := s.byWord(&objects[i]); g != nil {
				words[n], gets = len(gets), append(gets, g)
			}
		}
		answers, err := s.askAll(ctx, gets)
		if err != nil {
			return nil, err
		}
		for n, i := range batch {
			is := func(f found) bool { return f.id == objects[i].ID }
			if !slices.ContainsFunc(answers[0], is) || words[n] > 0 && !slices.ContainsFunc(answers[words[n]], is) {
				lost = append(lost, i)
			}
		}
	}
	return lost, nil
}

// filtered asks for objects by all properties by which they are removed.
func (s *Store) filtered(objects []sinks.Object, indexes []int) *get {
	ids, keys := make([]string, len(indexes)), make([]string, len(indexes))
	for n, i := range indexes {
		ids[n], keys[n] = objects[i].ID, documentKey(objects[i].Chunk.DocumentID)
	}
	g := s.get("_additional {id}", len(indexes))
	g.where(conditionIDs(ids), containsAny(propDocumentKey, keys), condition(propVersion, "GreaterThanEqual", "valueNumber", "0"),
		condition(propGeneration, "GreaterThanEqual", "valueInt", "0"))
	return g
}

// byWord asks for an object by the longest of its terms; nil if it has none.
func (s *Store) byWord(o *sinks.Object) *get {
	longest := ""
	for _, term := range strings.Fields(terms.Index(o.Chunk.Text)) {
		if len(term) > len(longest) {
			longest = term
		}
	}
	if longest == "" {
		return nil
	}
	g := s.get("_additional {id}", neighbours) // with a limit of 1 the server drops a match whose score is below 0
	g.argument("bm25", fmt.Sprintf("{query: %s, properties: [%s]}", quote(longest), quote(propTerms)))
	g.where(conditionIDs([]string{o.ID}))
	return g
}

// Count implements sinks.Sink. It counts objects; one whose vector is missing from the index counts too.
func (s *Store) Count(ctx context.Context) (int64, error) {
	arguments := ""
	if s.options.Tenant != "" {
		arguments = "(tenant: " + quote(s.options.Tenant) + ")"
	}
	reply, err := s.graphQL(ctx, fmt.Sprintf("{Aggregate {%s%s {meta {count}}}}", s.options.Collection, arguments))
	if err != nil {
		return 0, fmt.Errorf("count: %w", err)
	}
	aggregate, _ := reply["Aggregate"].(map[string]any)
	list, _ := aggregate[s.options.Collection].([]any)
	if len(list) == 0 {
		return 0, nil
	}
	group, _ := list[0].(map[string]any)
	meta, _ := group["meta"].(map[string]any)
	n, err := integer(meta["count"])
	if err != nil {
		return 0, fmt.Errorf("count: %w", err)
	}
	return n, nil
}

// Scan implements sinks.Scanner.
func (s *Store) Scan(ctx context.Context, documentID string, each func(sinks.Object) error) error {
	if documentID == "" {
		return s.scanAll(ctx, each)
	}
	return s.scanDocument(ctx, documentID, each)
}

// scanAll walks by the server's cursor, which goes by id.
func (s *Store) scanAll(ctx context.Context, each func(sinks.Object) error) error {
	after := ""
	for {
		getter := s.client.Data().ObjectsGetter().WithClassName(s.options.Collection).WithLimit(scanPage).WithAfter(after).
			WithConsistencyLevel(s.options.ConsistencyLevel)
		if s.options.Tenant != "" {
			getter = getter.WithTenant(s.options.Tenant)
		}
		page, err := getter.Do(ctx)
		if err != nil {
			return fmt.Errorf("scan: %w", unwrap(err, 0))
		}
		for _, o := range page {
			properties, _ := o.Properties.(map[string]any)
			chunk, err := decode(properties)
			if err != nil {
				return fmt.Errorf("scan: object %s: %w", o.ID, err)
			}
			if err := each(sinks.Object{ID: o.ID.String(), Chunk: chunk}); err != nil {
				return err
			}
			after = o.ID.String()
		}
		if len(page) < scanPage {
			return nil
		}
	}
}

// scanDocument walks by chunk index, because a cursor takes no filter and a query no more than 10,000 objects.
func (s *Store) scanDocument(ctx context.Context, documentID string, each func(sinks.Object) error) error {
	for from, width := 0, scanPage; ; {
		page, err := s.window(ctx, documentID, maxResults, atLeast(from), below(from+width))
		if err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		if len(page) == maxResults && width > 1 { // many revisions: there may be more
			width /= 2
			continue
		}
		for _, f := range page {
			if err := each(sinks.Object{ID: f.id, Chunk: f.chunk}); err != nil {
				return err
			}
		}
		from += width
		rest, err := s.window(ctx, documentID, 1, atLeast(from))
		if err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		if len(rest) == 0 {
			return nil
		}
	}
}

// window gives chunks of a document whose index meets the conditions.
func (s *Store) window(ctx context.Context, documentID string, limit int, conditions ...string) ([]found, error) {
	g := s.get(chunkFields+" _additional {id}", limit)
	g.where(append(conditions, conditionDocument(documentID))...)
	return s.ask(ctx, g)
}

func atLeast(index int) string {
	return condition(propIndex, "GreaterThanEqual", "valueInt", strconv.Itoa(index))
}

func below(index int) string {
	return condition(propIndex, "LessThan", "valueInt", strconv.Itoa(index))
}
