package weaviate

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/weaviate/weaviate-go-client/v4/weaviate/fault"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/waymarkhq/waymark/sinks"
)

// errNotSent marks errors of requests that the server has certainly not seen.
var errNotSent = errors.New("not sent")

// objectFailure is what an answer says of an object.
type objectFailure struct{ message string }

func (e *objectFailure) Error() string { return e.message }

// verdict is what an error of a request or of an object means.
type verdict struct {
	outcome sinks.Outcome
	// suspect: something may have been written, perhaps by halves.
	suspect bool
	// answered: no write is running any more.
	answered bool
	// tooLarge: the request is to be cut in two.
	tooLarge bool
}

// classify says what an error of a whole request means.
func classify(err error) verdict {
	if errors.Is(err, errNotSent) {
		return verdict{outcome: sinks.Outage}
	}
	var object *objectFailure
	if errors.As(err, &object) {
		return classifyObject(object.message)
	}
	if client := clientError(err); client != nil && client.StatusCode > 0 {
		return classifyStatus(client.StatusCode)
	}
	if s, ok := status.FromError(err); ok {
		return classifyCode(s.Code())
	}
	var dial *net.OpError
	var certificate *tls.CertificateVerificationError
	var dns *net.DNSError
	switch {
	case errors.As(err, &dial) && dial.Op == "dial", errors.As(err, &certificate), errors.As(err, &dns):
		return verdict{outcome: sinks.Outage} // no connection: nothing was sent
	}
	// Timeout, EOF, reset, an answer that breaks off: the server may have done it, may be doing it, or never will.
	return verdict{outcome: sinks.Ambiguous, suspect: true}
}

// classifyStatus judges an answer of REST.
func classifyStatus(code int) verdict {
	switch {
	case code == http.StatusRequestEntityTooLarge:
		return verdict{outcome: sinks.Transient, tooLarge: true}
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusTooManyRequests,
		code == http.StatusNotFound: // the collection or the tenant is gone
		return verdict{outcome: sinks.Outage}
	case code >= 500:
		return verdict{outcome: sinks.Outage, suspect: true} // it may have failed on the way
	}
	return verdict{outcome: sinks.Transient} // 400, 422: the server did not like the request, and wrote nothing
}

// classifyCode judges an answer of gRPC.
func classifyCode(code codes.Code) verdict {
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Aborted:
		return verdict{outcome: sinks.Ambiguous, suspect: true} // the connection was there, and no answer came
	case codes.Unauthenticated, codes.PermissionDenied, codes.NotFound, codes.Unimplemented:
		return verdict{outcome: sinks.Outage}
	case codes.ResourceExhausted:
		return verdict{outcome: sinks.Outage, tooLarge: true} // too large a message, or too many of them
	case codes.InvalidArgument:
		return verdict{outcome: sinks.Transient}
	}
	return verdict{outcome: sinks.Outage, suspect: true} // Internal, Unknown, DataLoss: as 5xx
}

// classifyObject judges the error of one object in an answer that is a success as a whole. The server gives nothing but a
// sentence; these are the ones that mean its own state and not the object.
func classifyObject(message string) verdict {
	for _, s := range []string{
		"read-only", "read only", // disk nearly full, or set by an operator
		"not enough memory", "memory pressure", "no space left",
		"consistency level", "enough replicas", "connection refused", "leader not found",
		"deadline exceeded", "context canceled", "timeout",
		"tenant not found", "tenant not active", "class not found", "could not find class",
		"vector with length", "vector lengths don't match", // ours were checked: the collection is not what it was
	} {
		if strings.Contains(strings.ToLower(message), s) {
			return verdict{outcome: sinks.Outage, suspect: true}
		}
	}
	// In a collection's first batch, objects have been reported as failed and stored all the same.
	return verdict{outcome: sinks.Transient, suspect: true}
}

// clientError finds the innermost error of the client, which does not unwrap.
func clientError(err error) *fault.WeaviateClientError {
	var found *fault.WeaviateClientError
	for {
		var e *fault.WeaviateClientError
		if !errors.As(err, &e) {
			return found
		}
		found, err = e, e.DerivedFromError
	}
}

// unwrap makes the cause of a client's error visible to errors.Is and errors.As, and keeps what the server asks to wait.
func unwrap(err error, after time.Duration) error {
	if client := clientError(err); client != nil && client.DerivedFromError != nil {
		err = client.DerivedFromError
	}
	if err != nil && after > 0 {
		return &sinks.RetryAfterError{After: after, Err: err}
	}
	return err
}
