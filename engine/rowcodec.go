package engine

import (
	"errors"

	"github.com/waymarkhq/waymark/stage"
)

// Irreplaceable makes a codec of rows that nobody can rebuild, such as balances. Without it a row that cannot be decoded
// counts as missing: the stage starts it anew. With it such a row holds its partition, and the group is not ready, until a
// release that reads it runs.
func Irreplaceable[R any](codec stage.Codec[R]) stage.Codec[R] { return irreplaceable[R]{codec} }

type irreplaceable[R any] struct{ stage.Codec[R] }

// Decode returns an error that the engine holds for.
func (c irreplaceable[R]) Decode(b []byte) (R, error) {
	r, err := c.Codec.Decode(b)
	if err != nil && !errors.Is(err, stage.ErrNewerFormat) {
		err = &heldRowError{err}
	}
	return r, err
}

// heldRowError is treated as a newer format is: the value is good, and this release cannot read it.
type heldRowError struct{ err error }

func (e *heldRowError) Error() string {
	return "a row that nobody can rebuild cannot be decoded: " + e.err.Error()
}
func (e *heldRowError) Unwrap() error        { return e.err }
func (e *heldRowError) Is(target error) bool { return target == stage.ErrNewerFormat }
