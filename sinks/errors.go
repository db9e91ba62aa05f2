package sinks

import (
	"errors"
	"fmt"
	"time"
)

// ObjectError says why an object can never be stored.
type ObjectError struct {
	ID      string
	Field   string // id, vector, document_id, text, title, source, heading, metadata, index or version
	Problem string
}

func (e *ObjectError) Error() string {
	return fmt.Sprintf("object %s: %s %s", e.ID, e.Field, e.Problem)
}

// QueryError says which part of a query is unusable.
type QueryError struct {
	Field   string // k, mode, vector or metadata
	Problem string
}

func (e *QueryError) Error() string { return fmt.Sprintf("query: %s %s", e.Field, e.Problem) }

// Space names the vector space of a store: vectors of different models cannot be compared.
type Space struct {
	Model      string
	Dimensions int
}

func (s Space) String() string {
	return fmt.Sprintf("model %q with %d dimensions", s.Model, s.Dimensions)
}

// Validate says what is wrong with a space to be opened.
func (s Space) Validate() error {
	if s.Model == "" {
		return errors.New("the name of the embedding model is empty")
	}
	if s.Dimensions < 1 || s.Dimensions > MaxDimensions {
		return fmt.Errorf("%d dimensions are not between 1 and %d", s.Dimensions, MaxDimensions)
	}
	return nil
}

// SpaceError is returned when a store is opened with another model or other dimensions than it was made with.
type SpaceError struct {
	Store  string // the file or the collection
	Stored Space
	Wanted Space
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("%s holds vectors of %s; wanted is %s: use another store, or ingest everything again", e.Store, e.Stored, e.Wanted)
}

// RetryAfterError is an outage of a store that says how long to wait.
type RetryAfterError struct {
	After time.Duration
	Err   error
}

func (e *RetryAfterError) Error() string { return e.Err.Error() }

func (e *RetryAfterError) Unwrap() error { return e.Err }

// RetryAfter is the least time to wait that a store has asked for with err; 0 if it did not say.
func RetryAfter(err error) time.Duration {
	var r *RetryAfterError
	if errors.As(err, &r) {
		return r.After
	}
	return 0
}
