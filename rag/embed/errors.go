package embed

import (
	"errors"
	"fmt"
	"time"

	"github.com/waymarkhq/waymark/rag"
)

// Reasons of calls that fail as a whole. Those of single texts are rag.ReasonBadVector and rag.ReasonEmbedderRefused.
const (
	ReasonUnavailable   = "embedder_unavailable"   // no connection, no answer in time, 5xx
	ReasonOverloaded    = "embedder_overloaded"    // 429: too many requests, or the quota is spent
	ReasonUnauthorized  = "embedder_unauthorized"  // 401, 403, or no readable API key
	ReasonMisconfigured = "embedder_misconfigured" // no such path or model, or vectors of another length than before
	ReasonBadReply      = "embedder_bad_reply"     // a reply that cannot be read or matched to the texts
	ReasonCanceled      = "embedder_canceled"      // the caller gave up
	ReasonUnknown       = "embedder_error"         // anything else
)

// Error is an error of an embedder with its class and reason.
type Error struct {
	Class  rag.Class
	Reason string // stable, lower case: a Reason constant of this package or of rag
	// RetryAfter is how long the service asks to be left alone; 0 if it does not say.
	RetryAfter time.Duration
	Err        error // a sentence for people; may be nil
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Reason
	}
	return fmt.Sprintf("%s: %v", e.Reason, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// ClassOf is the class of the first *Error in err's chain. Any other error is transient: an unknown error must neither
// kill a healthy document nor hold a partition.
func ClassOf(err error) rag.Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return rag.ClassTransient
}
