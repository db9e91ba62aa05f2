package processors

import (
	"errors"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/external"
	"github.com/waymarkhq/waymark/stage"
)

// parserError puts a failure that is not the document's into the stage's classes: an external parser that is away is an outage,
// everything else may pass.
func parserError(err error) error {
	var e *external.Error
	if !errors.As(err, &e) {
		return err
	}
	class := stage.ClassTransient
	if e.Class == rag.ClassOutage {
		class = stage.ClassOutage
	}
	return &stage.Error{Class: class, Reason: e.Reason, After: e.After, Err: err}
}
