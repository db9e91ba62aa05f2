package wire

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/wire/wirepb"
)

// maxChunks bounds every number that sizes a bitmap of chunks. No document that fits into a record has as many.
const maxChunks = 1 << 24

// check keeps the first thing that is wrong with a value, so that a conversion reads as a list of assignments.
type check struct{ err error }

func (c *check) fail(field, format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%s %s", field, fmt.Sprintf(format, args...))
	}
}

func (c *check) to(field string, n int) uint32 {
	if n < 0 || n > math.MaxInt32 {
		c.fail(field, "%d is not between 0 and %d", n, math.MaxInt32)
		return 0
	}
	return uint32(n)
}

func (c *check) from(field string, n uint32) int {
	if n > math.MaxInt32 {
		c.fail(field, "%d is not between 0 and %d", n, math.MaxInt32)
		return 0
	}
	return int(n)
}

// chunks checks a number of chunks or an index.
func (c *check) chunks(field string, n int) int {
	if n < 0 || n > maxChunks {
		c.fail(field, "%d is not between 0 and %d", n, maxChunks)
		return 0
	}
	return n
}

func (c *check) version(field string, v int64) int64 {
	if v < 0 {
		c.fail(field, "%d is negative", v)
	}
	return v
}

func (c *check) hash(field string, b []byte) (h rag.Hash) {
	if len(b) != 0 && len(b) != len(h) {
		c.fail(field, "has %d bytes, not %d", len(b), len(h))
		return h
	}
	copy(h[:], b)
	return h
}

func (c *check) time(field string, t *wirepb.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	if t.Nanos >= 1e9 {
		c.fail(field, "has %d nanoseconds", t.Nanos)
		return time.Time{}
	}
	return time.Unix(t.Seconds, int64(t.Nanos)).UTC()
}

func timeTo(t time.Time) *wirepb.Time {
	if t.IsZero() {
		return nil
	}
	return &wirepb.Time{Seconds: t.Unix(), Nanos: uint32(t.Nanosecond())}
}

func hashTo(h *rag.Hash) []byte {
	if *h == (rag.Hash{}) {
		return nil
	}
	return h[:]
}

// sentence makes text for people encodable whatever a library or a foreign service has put into it: the loss of a
// byte there must not keep a version from dying properly.
func sentence(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func sentences(list []string) []string {
	for i, s := range list {
		if valid := sentence(s); valid != s {
			list = append([]string(nil), list...)
			for j := i; j < len(list); j++ {
				list[j] = sentence(list[j])
			}
			return list
		}
	}
	return list
}

// enum is a closed set of values by their numbers on the wire. Number 0 is "none".
type enum[V comparable] []V

func (e enum[V]) number(c *check, field string, v V) int32 {
	for i, w := range e {
		if v == w {
			return int32(i)
		}
	}
	c.fail(field, "%v is unknown", v)
	return 0
}

func (e enum[V]) value(c *check, field string, n int32) V {
	if n < 0 || int(n) >= len(e) {
		c.fail(field, "has the unknown number %d", n)
		return e[0]
	}
	return e[n]
}

// someNumber is number where "none" has no meaning.
func (e enum[V]) someNumber(c *check, field string, v V) int32 {
	n := e.number(c, field, v)
	if n == 0 {
		c.fail(field, "is missing")
	}
	return n
}

// someValue is value where "none" has no meaning.
func (e enum[V]) someValue(c *check, field string, n int32) V {
	v := e.value(c, field, n)
	if n == 0 {
		c.fail(field, "is missing")
	}
	return v
}

var (
	statuses = enum[rag.Status]{
		"",
		wirepb.Status_STATUS_ACCEPTED:   rag.StatusAccepted,
		wirepb.Status_STATUS_CHUNKED:    rag.StatusChunked,
		wirepb.Status_STATUS_EMBEDDED:   rag.StatusEmbedded,
		wirepb.Status_STATUS_RETRYING:   rag.StatusRetrying,
		wirepb.Status_STATUS_INDEXED:    rag.StatusIndexed,
		wirepb.Status_STATUS_UNCHANGED:  rag.StatusUnchanged,
		wirepb.Status_STATUS_SUPERSEDED: rag.StatusSuperseded,
		wirepb.Status_STATUS_DELETED:    rag.StatusDeleted,
		wirepb.Status_STATUS_DEAD:       rag.StatusDead,
	}
	failureClasses = enum[rag.Class]{
		"",
		wirepb.FailureClass_FAILURE_CLASS_MESSAGE:   rag.ClassMessage,
		wirepb.FailureClass_FAILURE_CLASS_TRANSIENT: rag.ClassTransient,
		wirepb.FailureClass_FAILURE_CLASS_OUTAGE:    rag.ClassOutage,
	}
	progressKinds = enum[rag.ProgressKind]{
		0,
		wirepb.Progress_KIND_MANIFEST: rag.ProgressManifest,
		wirepb.Progress_KIND_VERDICT:  rag.ProgressVerdict,
		wirepb.Progress_KIND_DELETE:   rag.ProgressDelete,
		wirepb.Progress_KIND_RECEIPT:  rag.ProgressReceipt,
		wirepb.Progress_KIND_REMOVED:  rag.ProgressRemoved,
	}
	commandKinds = enum[rag.CommandKind]{
		0,
		wirepb.Command_KIND_SCHEDULE: rag.CommandSchedule,
		wirepb.Command_KIND_CLOSE:    rag.CommandClose,
		wirepb.Command_KIND_REPLAY:   rag.CommandReplay,
		wirepb.Command_KIND_DISCARD:  rag.CommandDiscard,
		wirepb.Command_KIND_DUE:      rag.CommandDue,
	}
	letterStates = enum[rag.LetterState]{
		"",
		wirepb.LetterRow_STATE_WAITING:    rag.LetterWaiting,
		wirepb.LetterRow_STATE_SCHEDULED:  rag.LetterScheduled,
		wirepb.LetterRow_STATE_SENT:       rag.LetterSent,
		wirepb.LetterRow_STATE_REPLAYING:  rag.LetterReplaying,
		wirepb.LetterRow_STATE_RESOLVED:   rag.LetterResolved,
		wirepb.LetterRow_STATE_SUPERSEDED: rag.LetterSuperseded,
		wirepb.LetterRow_STATE_DISCARDED:  rag.LetterDiscarded,
	}
)
