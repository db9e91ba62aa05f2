package checkpoint_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/checkpoint"
)

// account is a state that is a function of the log: a sum, and how it came about.
type account struct {
	Balance int `json:"balance"`
	Last    int `json:"last"`
}

type (
	row   = checkpoint.Row[account, int]
	rules = checkpoint.Rules[account, int]
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func at(offset int64, id string) checkpoint.Message {
	return checkpoint.Message{ID: id, Topic: "t", Offset: offset, At: noon, Committed: -1}
}

// add is the step of a message that adds n; its outcome is the balance after it, which no later state can tell.
func add(n int) func(account) (account, int, error) {
	return func(a account) (account, int, error) {
		a.Balance += n
		a.Last = n
		return a, a.Balance, nil
	}
}

func apply(t rapid.TB, r rules, from *row, m checkpoint.Message, n int) checkpoint.Result[account, int] {
	t.Helper()
	res, err := r.Apply(from, m, add(n))
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// after is the row after the messages a, b and c, which add 1, 2 and 3 at the offsets 10, 11 and 12.
func after(t rapid.TB, r rules) *row {
	t.Helper()
	var last *row
	for i, id := range []string{"a", "b", "c"} {
		last = apply(t, r, last, at(int64(10+i), id), i+1).Row
	}
	return last
}

func TestWhatAMessageIs(t *testing.T) {
	r := rules{Now: func() time.Time { return noon }}
	known := after(t, r)
	if known.State.Balance != 6 || known.Count != 3 {
		t.Fatalf("the row is %+v", known)
	}
	for _, c := range []struct {
		name    string
		message checkpoint.Message
		want    checkpoint.Decision
		balance int // of the row that is written; -1: none is
		outcome int
	}{
		{"unknown", at(13, "d"), checkpoint.New, 106, 106},
		{"unknown below others, which could not be applied before", at(5, "d"), checkpoint.New, 106, 106},
		{"again: the outcome is that of the first time", at(11, "b"), checkpoint.Redelivery, 6, 3},
		{"again, its id read in another way", at(11, "B"), checkpoint.Redelivery, 6, 3},
		{"sent again", at(13, "b"), checkpoint.Duplicate, -1, 3},
		{"a sent-again one that was there before a reset", at(3, "b"), checkpoint.Duplicate, -1, 3},
		{"sent again to another topic", checkpoint.Message{ID: "b", Topic: "u", Offset: 11}, checkpoint.Duplicate, -1, 3},
		{"without an id", at(13, ""), checkpoint.New, 106, 106},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := fmt.Sprint(known)
			res := apply(t, r, known, c.message, 100)
			if got := r.Decide(known, c.message); res.Decision != c.want || got != c.want {
				t.Fatalf("it is %v (%v), want %v", res.Decision, got, c.want)
			}
			balance := -1
			if res.Row != nil {
				balance = res.Row.State.Balance
			}
			if balance != c.balance || res.Outcome != c.outcome || (res.Row != nil) != res.Decision.Emits() {
				t.Errorf("balance %d and outcome %d, want %d and %d", balance, res.Outcome, c.balance, c.outcome)
			}
			if fmt.Sprint(known) != before {
				t.Errorf("the row was changed from %v to %v", before, known)
			}
		})
	}
}

// A row whose messages have been forgotten up to a floor does not know them, but what stands below is old and not new.
func TestForgottenIsOld(t *testing.T) {
	r := rules{Keep: checkpoint.Keep{For: time.Hour, Least: 1, Most: 2}, Now: func() time.Time { return noon }}
	var last *row
	for i := range int64(6) {
		m := at(i, fmt.Sprint("m", i))
		m.Committed = 3
		last = apply(t, r, last, m, 1).Row
	}
	log := last.Logs["t"]
	if len(log.Seen) != 3 || log.Floor.Offset != 3 {
		t.Fatalf("%d are remembered above %v, want the 3 that are not committed", len(log.Seen), log.Floor)
	}
	for offset, want := range map[int64]checkpoint.Decision{2: checkpoint.Old, 3: checkpoint.Redelivery, 6: checkpoint.New} {
		if got := r.Decide(last, at(offset, fmt.Sprint("m", offset))); got != want {
			t.Errorf("offset %d is %v, want %v", offset, got, want)
		}
	}
	// Offsets of a topic that was made anew start again: a higher epoch tells them from old ones.
	r.Epoch = 1
	if got := r.Decide(last, at(0, "after")); got != checkpoint.New {
		t.Errorf("in the next epoch offset 0 is %v", got)
	}
}

func TestMemoryByTimeAndNumber(t *testing.T) {
	late := noon.Add(2 * time.Hour)
	for _, c := range []struct {
		name string
		keep checkpoint.Keep
		at   time.Time // of the first eight messages
		want int       // of ten
	}{
		{"young and few", checkpoint.Keep{For: 3 * time.Hour, Least: 1, Most: 10}, noon, 10},
		{"old, the latest stay", checkpoint.Keep{For: time.Hour, Least: 4, Most: 10}, noon, 4},
		{"old, down to the young ones", checkpoint.Keep{For: time.Hour, Least: 1, Most: 10}, noon, 2},
		{"far in the future is as old as far in the past", checkpoint.Keep{For: time.Hour, Least: 1, Most: 10}, noon.Add(1e6 * time.Hour), 2},
		{"young but too many", checkpoint.Keep{For: 3 * time.Hour, Least: 1, Most: 5}, noon, 5},
		{"the default", checkpoint.Keep{}, noon, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rules{Keep: c.keep, Now: func() time.Time { return late }}
			var last *row
			for i := range int64(10) {
				m := at(i, fmt.Sprint(i))
				if m.At, m.Committed = c.at, i; i >= 8 {
					m.At = late
				}
				last = apply(t, r, last, m, 1).Row
			}
			if got := len(last.Logs["t"].Seen); got != c.want {
				t.Errorf("%d are remembered, want %d", got, c.want)
			}
		})
	}
}

func TestKeepIsValidated(t *testing.T) {
	if err := checkpoint.DefaultKeep.Validate(); err != nil {
		t.Error(err)
	}
	err := checkpoint.Keep{For: -1, Least: -2, Most: -3}.Validate()
	for _, field := range []string{"for:", "least:", "most:"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%v does not name %s", err, field)
		}
	}
}

func TestAStepThatFailsLeavesNothing(t *testing.T) {
	refused := errors.New("refused")
	res, err := rules{}.Apply(nil, at(0, "a"), func(account) (account, int, error) { return account{Balance: 7}, 7, refused })
	if !errors.Is(err, refused) || res.Row != nil || res.Outcome != 0 || res.Decision != checkpoint.New {
		t.Errorf("got %+v and %v", res, err)
	}
}

func TestOneLogUnlessStatesMerge(t *testing.T) {
	other := checkpoint.Message{ID: "x", Topic: "u", Offset: 0, At: noon}
	if _, err := (rules{}).Apply(after(t, rules{}), other, add(1)); !errors.Is(err, checkpoint.ErrSecondLog) {
		t.Errorf("a second topic gives %v", err)
	}
	merging := rules{MergeState: func(a, _ account) account { return a }}
	if _, err := merging.Apply(after(t, merging), other, add(1)); err != nil {
		t.Errorf("where states merge, a second topic gives %v", err)
	}
	// With the next epoch the messages may come from a topic of another name.
	if _, err := (rules{Epoch: 1}).Apply(after(t, rules{}), other, add(1)); err != nil {
		t.Errorf("in the next epoch a topic of another name gives %v", err)
	}
}

// Any bytes are an id: each is recognised after the row was written and read, and none is taken for another.
func TestAnyBytesAreAnID(t *testing.T) {
	special := []string{"\x00", "\xff\xfe", "\xff\xfd", "�", "<&>", "sha256:", "at:t@0-1", strings.Repeat("é", 128), strings.Repeat("é", 129)}
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.OneOf(rapid.SampledFrom(special), rapid.StringN(1, 40, -1),
			rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 400), func(b []byte) string { return string(b) })), 1, 8, rapid.ID).Draw(t, "ids")
		r := rules{Now: func() time.Time { return noon }}
		var last *row
		for i, id := range ids {
			res := apply(t, r, last, at(int64(i), id), 1)
			if res.Decision != checkpoint.New {
				t.Fatalf("%q is %v", id, res.Decision)
			}
			last = reread(t, res.Row)
		}
		for i, id := range ids {
			if got := r.Decide(last, at(int64(i), id)); got != checkpoint.Redelivery {
				t.Errorf("%q again is %v", id, got)
			}
			if got := r.Decide(last, at(100, id)); got != checkpoint.Duplicate {
				t.Errorf("%q sent again is %v", id, got)
			}
		}
	})
}

// reread is the row as it is read back from JSON.
func reread(t rapid.TB, r *row) *row {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back row
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(&back, r) {
		t.Fatalf("read back, the row is another one\nwas: %+v\nis:  %+v", r, &back)
	}
	return &back
}

func TestDecisionsHaveNames(t *testing.T) {
	var all []string
	for d := range checkpoint.Old + 1 {
		all = append(all, d.String())
	}
	if got := strings.Join(all, " "); got != "undecided new redelivery duplicate old" {
		t.Error(got)
	}
}
