package processors_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

// drawn is the test under which a kit runs an arbitrary history.
type drawn struct {
	testing.TB
	rt *rapid.T
}

func (d drawn) Helper()                           {}
func (d drawn) Errorf(format string, args ...any) { d.rt.Errorf(format, args...) }
func (d drawn) Fatalf(format string, args ...any) { d.rt.Fatalf(format, args...) }

// histories runs arbitrary histories of a stage with every crash. The kit knows what must hold.
func histories(t *testing.T, kit func(t testing.TB) *stagetest.Kit, next func(rt *rapid.T) []stagetest.Step) {
	rapid.Check(t, func(rt *rapid.T) {
		var steps []stagetest.Step
		for range rapid.IntRange(1, 4).Draw(rt, "steps") {
			steps = append(steps, next(rt)...)
		}
		kit(drawn{t, rt}).Run(steps...)
	})
}

func pick[T any](rt *rapid.T, name string, from ...T) T {
	return rapid.SampledFrom(from).Draw(rt, name)
}

func upTo(rt *rapid.T, name string, n int) int { return rapid.IntRange(0, n).Draw(rt, name) }

func TestHistoriesOfDocuments(t *testing.T) {
	kit := func(t testing.TB) *stagetest.Kit { return chunkerKit(t, newChunker(), noRow) }
	histories(t, kit, func(rt *rapid.T) []stagetest.Step {
		key, id := pick(rt, "key", "doc", "other"), pick(rt, "message id", "m1", "m2", "")
		if upTo(rt, "forwarded", 3) == 0 {
			return []stagetest.Step{landed(chunkerForward(key, id+"f", int64(upTo(rt, "origin", 4))))}
		}
		step := document(key, id, pick(rt, "text", "one", "two\nlines", "scan", "passing", "panic"))
		if upTo(rt, "stray", 3) == 0 {
			step = step.On(int32(upTo(rt, "partition", partitions-1)))
		}
		return []stagetest.Step{step}
	})
}

// What leads to what takes its way through other groups, so nothing of it is in flight together. Vectors are left out: what a
// row that is ahead has confirmed, or ended, is not written again, and what is has no order.
func TestHistoriesOfProgress(t *testing.T) {
	kit := func(t testing.TB) *stagetest.Kit { return newIndexer().kit(t) }
	histories(t, kit, func(rt *rapid.T) []stagetest.Step {
		offset := int64(upTo(rt, "offset", 2))
		s := generation(subject("doc", fmt.Sprint("m", offset), offset), upTo(rt, "generation", 1))
		var steps []stagetest.Step
		switch pick(rt, "kind", "manifest", "first", "second", "all", "verdict", "delete") {
		case "manifest":
			steps = append(steps, manifest(s, 2))
		case "first":
			steps = append(steps, receipt(s, 0, 1))
		case "second":
			steps = append(steps, receipt(s, 1, 2))
		case "all":
			steps = append(steps, manifest(s, 2), receipt(s, 0, 2))
		case "verdict":
			steps = append(steps, verdict(s, pick(rt, "status", rag.StatusDead, rag.StatusSuperseded, rag.StatusUnchanged)))
		case "delete":
			steps = append(steps, deletion(s))
		}
		return append(steps, stagetest.Settled())
	})
}

// A replay or a discard that is refused leaves no trace in the row, and is asked again when it is delivered again: they are
// left out here.
func TestHistoriesOfLetters(t *testing.T) {
	histories(t, deadLettersKit, func(rt *rapid.T) []stagetest.Step {
		s := attempt(generation(letterSubject, upTo(rt, "generation", 1)), upTo(rt, "attempt", 2))
		kind := pick(rt, "kind", 0, rag.CommandSchedule, rag.CommandDue, rag.CommandClose)
		if kind == 0 {
			return []stagetest.Step{letter(s), stagetest.Settled()}
		}
		return []stagetest.Step{command(kind, s), stagetest.Settled()}
	})
}

func TestHistoriesOfEvents(t *testing.T) {
	kit := func(t testing.TB) *stagetest.Kit { return trackerKit(t, nil) }
	histories(t, kit, func(rt *rapid.T) []stagetest.Step {
		s := attempt(generation(subject("doc", "m1", int64(upTo(rt, "offset", 1))), upTo(rt, "generation", 1)), upTo(rt, "attempt", 1))
		status := pick(rt, "status", rag.StatusAccepted, rag.StatusChunked, rag.StatusRetrying, rag.StatusIndexed, rag.StatusDead)
		return []stagetest.Step{event(s, pick(rt, "stage", "chunker", "indexer"), status, upTo(rt, "seconds", 9))}
	})
}
