package weaviate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/weaviate/weaviate/entities/models"
	"github.com/weaviate/weaviate/entities/schema"

	"github.com/waymarkhq/waymark/sinks"
)

// oldestVersion of the server that has all that is used here (range filters, tenants, vectors as bytes).
const oldestVersion = "1.27.0"

// layoutVersion is that of the properties.
const layoutVersion = 1

// Properties of a chunk. Versions and byte offsets are numbers, because GraphQL drops integers above 2^31; numbers are
// exact up to 2^53.
const (
	propDocumentID  = "documentId"  // for people; not indexed, because filters trim white space
	propDocumentKey = "documentKey" // hash of the document id, for filters
	propVersion     = "version"
	propGeneration  = "generation"
	propIndex       = "number"
	propCount       = "count"
	propStart       = "start"
	propEnd         = "end"
	propPage        = "page"
	propTitle       = "title"
	propSource      = "source"
	propHeading     = "heading"
	propText        = "text"
	propMetadata    = "metadata"
	propParentStart = "parentStart"
	propParentEnd   = "parentEnd"
	propParentText  = "parentText"
	propTerms       = "terms"      // folded terms of the text, for text search
	propTitleTerms  = "titleTerms" // folded terms of title and heading
)

// description is what the collection says about itself, as JSON in its description.
type description struct {
	Layout     int    `json:"waymark_layout"`
	Model      string `json:"model"`
	Dimensions int    `json:"dimensions"`
}

// canaryCollection holds nothing but canaries, so that none is ever seen among the chunks.
func (s *Store) canaryCollection() string { return s.options.Collection + "Canary" }

// prepareSchema makes the collections and the tenant, or checks those that are there.
func (s *Store) prepareSchema(ctx context.Context) error {
	if err := s.checkServer(ctx); err != nil {
		return err
	}
	class := s.collection(s.options.Collection, chunkProperties(), s.options.Tenant != "")
	if err := s.ensureCollection(ctx, class, func(stored *models.Class) error { return s.checkCollection(ctx, stored) }); err != nil {
		return err
	}
	canary := s.collection(s.canaryCollection(), nil, false)
	if err := s.ensureCollection(ctx, canary, s.checkSpace); err != nil {
		return err
	}
	return s.ensureTenant(ctx)
}

func (s *Store) checkServer(ctx context.Context) error {
	meta, err := s.client.Misc().MetaGetter().Do(ctx)
	if err != nil {
		return fmt.Errorf("read server version: %w", unwrap(err, 0))
	}
	if versionLess(meta.Version, oldestVersion) {
		return fmt.Errorf("the server is version %s; needed is %s or later", meta.Version, oldestVersion)
	}
	return nil
}

// versionLess compares versions of three numbers; what is not a number counts as 0.
func versionLess(a, b string) bool {
	x, y := strings.SplitN(a, ".", 3), strings.SplitN(b, ".", 3)
	for i := range min(len(x), len(y)) {
		m, _ := strconv.Atoi(strings.SplitN(x[i], "-", 2)[0])
		n, _ := strconv.Atoi(strings.SplitN(y[i], "-", 2)[0])
		if m != n {
			return m < n
		}
	}
	return len(x) < len(y)
}

// collection describes a collection of this store's space.
func (s *Store) collection(name string, properties []*models.Property, tenants bool) *models.Class {
	about, err := json.Marshal(description{Layout: layoutVersion, Model: s.options.Model, Dimensions: s.options.Dimensions})
	if err != nil {
		panic(err) // strings and numbers
	}
	var replicas *models.ReplicationConfig
	if s.options.Replication > 0 {
		replicas = &models.ReplicationConfig{Factor: int64(s.options.Replication)}
	}
	return &models.Class{
		ReplicationConfig:  replicas,
		Class:              name,
		Description:        string(about),
		Properties:         properties,
		Vectorizer:         "none",
		VectorIndexType:    "hnsw",
		VectorIndexConfig:  map[string]any{"distance": "cosine"},
		MultiTenancyConfig: &models.MultiTenancyConfig{Enabled: tenants},
		InvertedIndexConfig: &models.InvertedIndexConfig{
			Stopwords: &models.StopwordConfig{Preset: "none"}, // ours are dropped from the query
		},
	}
}

func chunkProperties() []*models.Property {
	yes, no := true, false
	stored := func(name string, dataType schema.DataType) *models.Property {
		p := &models.Property{Name: name, DataType: dataType.PropString(), IndexFilterable: &no}
		if dataType == schema.DataTypeText {
			p.IndexSearchable = &no
		}
		return p
	}
	filtered := func(name string, dataType schema.DataType, ranges bool) *models.Property {
		p := &models.Property{Name: name, DataType: dataType.PropString(), IndexFilterable: &yes}
		if ranges {
			p.IndexRangeFilters = &yes
			return p
		}
		if dataType == schema.DataTypeText || dataType == schema.DataTypeTextArray {
			p.IndexSearchable, p.Tokenization = &no, models.PropertyTokenizationField
		}
		return p
	}
	searched := func(name string) *models.Property {
		return &models.Property{
			Name: name, DataType: schema.DataTypeText.PropString(), IndexFilterable: &no, IndexSearchable: &yes,
			Tokenization: models.PropertyTokenizationWhitespace,
		}
	}
	return []*models.Property{
		stored(propDocumentID, schema.DataTypeText),
		filtered(propDocumentKey, schema.DataTypeText, false),
		filtered(propVersion, schema.DataTypeNumber, true),
		filtered(propGeneration, schema.DataTypeInt, true),
		filtered(propIndex, schema.DataTypeInt, true),
		stored(propCount, schema.DataTypeInt),
		stored(propStart, schema.DataTypeNumber),
		stored(propEnd, schema.DataTypeNumber),
		stored(propPage, schema.DataTypeInt),
		stored(propTitle, schema.DataTypeText),
		stored(propSource, schema.DataTypeText),
		stored(propHeading, schema.DataTypeText),
		stored(propText, schema.DataTypeText),
		stored(propParentStart, schema.DataTypeNumber),
		stored(propParentEnd, schema.DataTypeNumber),
		stored(propParentText, schema.DataTypeText),
		filtered(propMetadata, schema.DataTypeTextArray, false),
		searched(propTerms),
		searched(propTitleTerms),
	}
}

// errNoCollection is what is left to say when a collection is not there after it was made.
var errNoCollection = errors.New("it is not there afterwards")

// ensureCollection makes a collection if there is none, and checks the one that is there; of several processes that start
// at once, one makes it.
func (s *Store) ensureCollection(ctx context.Context, class *models.Class, check func(*models.Class) error) error {
	for attempt := 0; ; attempt++ {
		stored, err := s.client.Schema().ClassGetter().WithClassName(class.Class).Do(ctx)
		if err == nil {
			return check(stored)
		}
		if e := clientError(err); e == nil || e.StatusCode != http.StatusNotFound {
			return fmt.Errorf("read collection %s: %w", class.Class, unwrap(err, 0))
		}
		err = s.client.Schema().ClassCreator().WithClass(class).Do(ctx)
		exists := clientError(err) != nil && clientError(err).StatusCode == http.StatusUnprocessableEntity
		if err != nil && !exists || attempt > 0 {
			return fmt.Errorf("make collection %s: %w", class.Class, errors.Join(unwrap(err, 0), errNoCollection))
		}
	}
}

// checkSpace refuses a collection of another layout, model or dimensions.
func (s *Store) checkSpace(class *models.Class) error {
	var about description
	if err := json.Unmarshal([]byte(class.Description), &about); err != nil || about.Layout == 0 {
		return fmt.Errorf("collection %s belongs to another program: choose another name", class.Class)
	}
	if about.Layout != layoutVersion {
		return fmt.Errorf("collection %s has the layout %d, and this release knows %d", class.Class, about.Layout, layoutVersion)
	}
	stored := sinks.Space{Model: about.Model, Dimensions: about.Dimensions}
	wanted := sinks.Space{Model: s.options.Model, Dimensions: s.options.Dimensions}
	if stored != wanted {
		return &sinks.SpaceError{Store: "collection " + class.Class, Stored: stored, Wanted: wanted}
	}
	return nil
}

func (s *Store) checkCollection(ctx context.Context, class *models.Class) error {
	if err := s.checkSpace(class); err != nil {
		return err
	}
	tenants := class.MultiTenancyConfig != nil && class.MultiTenancyConfig.Enabled
	if tenants != (s.options.Tenant != "") {
		return fmt.Errorf("collection %s has multi-tenancy: %t; the tenant wanted is %q", class.Class, tenants, s.options.Tenant)
	}
	s.replicated = class.ReplicationConfig != nil && class.ReplicationConfig.Factor > 1
	return s.addProperties(ctx, class)
}

// addProperties adds those that a collection of an earlier release lacks: a query for one that is not there is an error. Two
// processes may do it at once.
func (s *Store) addProperties(ctx context.Context, class *models.Class) error {
	for _, p := range chunkProperties() {
		if slices.ContainsFunc(class.Properties, func(has *models.Property) bool { return has.Name == p.Name }) {
			continue
		}
		err := s.client.Schema().PropertyCreator().WithClassName(class.Class).WithProperty(p).Do(ctx)
		if e := clientError(err); e != nil && e.StatusCode == http.StatusUnprocessableEntity {
			continue // it is there already
		}
		if err != nil {
			return fmt.Errorf("add property %s to collection %s: %w", p.Name, class.Class, unwrap(err, 0))
		}
	}
	return nil
}

func (s *Store) ensureTenant(ctx context.Context) error {
	if s.options.Tenant == "" {
		return nil
	}
	err := s.client.Schema().TenantsCreator().WithClassName(s.options.Collection).
		WithTenants(models.Tenant{Name: s.options.Tenant}).Do(ctx) // one that is there stays as it is
	if err != nil {
		return errors.Join(fmt.Errorf("make tenant %q", s.options.Tenant), unwrap(err, 0))
	}
	return nil
}
