package ledger_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
)

const commands = "commands"

var original = rag.Raw{Key: []byte("d"), Value: []byte("the document"), Headers: []rag.Header{{Key: []byte("h"), Value: []byte{0}}}}

func letterSubject(generation, attempt int) rag.Subject {
	return rag.Subject{DocumentID: "d", MessageID: "m1", Revision: rev(1, generation), Attempt: attempt, Partition: 3}
}

func deadLetter(generation, attempt int) rag.Letter {
	return rag.Letter{ID: "documents@0-3-0", Subject: letterSubject(generation, attempt), Position: rag.Position{Topic: "documents", Partition: 3},
		Failure: rag.Failure{Reason: "broken_file"}, Original: original, FirstFailed: noon, LastFailed: noon.Add(time.Minute)}
}

func command(kind rag.CommandKind, generation, attempt int) rag.Command {
	c := rag.Command{Kind: kind, LetterID: "documents@0-3-0", Subject: letterSubject(generation, attempt), At: noon}
	if kind == rag.CommandSchedule {
		c.Due, c.Original, c.Position = noon.Add(time.Second), original, rag.Position{Topic: "documents", Partition: 3}
		c.Failure = &rag.Failure{Reason: "hiccup"}
	}
	return c
}

func closing(generation int, s rag.Status) rag.Command {
	c := command(rag.CommandClose, generation, 0)
	c.Status = s
	return c
}

// lettered applies letters and commands; the command at index i of the list stands at position i+1 of commands.
func lettered(t *testing.T, things ...any) (row *ledger.LetterRow, replays []rag.Replay, refusals int) {
	t.Helper()
	for i, x := range things {
		switch x := x.(type) {
		case rag.Letter:
			row = ledger.ApplyLetter(row, x)
		case rag.Command:
			var r *rag.Replay
			var refused bool
			row, r, refused = ledger.ApplyCommand(row, x, commands, rag.Version(i+1))
			if r != nil {
				replays = append(replays, *r)
			}
			if refused {
				refusals++
			}
		}
	}
	return row, replays, refusals
}

func TestWhatBecomesOfALetter(t *testing.T) {
	replay := command(rag.CommandReplay, 0, 0)
	replayAgain := command(rag.CommandReplay, 1, 0) // of the failure of the first replay
	discard, discardAgain := command(rag.CommandDiscard, 0, 0), command(rag.CommandDiscard, 1, 0)
	due1 := command(rag.CommandDue, 0, 1)
	schedule1, schedule2 := command(rag.CommandSchedule, 0, 1), command(rag.CommandSchedule, 0, 2)
	for name, c := range map[string]struct {
		things   []any
		want     rag.LetterState
		replays  []rag.Subject
		refused  int
		attempts int
	}{
		"a dead version waits":                            {[]any{deadLetter(0, 0)}, rag.LetterWaiting, nil, 0, 1},
		"a letter written again is the same":              {[]any{deadLetter(0, 0), deadLetter(0, 0)}, rag.LetterWaiting, nil, 0, 1},
		"a replay is a new generation":                    {[]any{deadLetter(0, 2), replay}, rag.LetterReplaying, []rag.Subject{letterSubject(1, 0)}, 0, 3},
		"a second replay is refused while one runs":       {[]any{deadLetter(0, 0), replay, replay}, rag.LetterReplaying, []rag.Subject{letterSubject(1, 0)}, 1, 1},
		"a replay is refused after one succeeded":         {[]any{deadLetter(0, 0), replay, closing(1, rag.StatusIndexed), replay}, rag.LetterResolved, []rag.Subject{letterSubject(1, 0)}, 1, 1},
		"a replay that dies can be replayed again":        {[]any{deadLetter(0, 0), replay, deadLetter(1, 0), replayAgain}, rag.LetterReplaying, []rag.Subject{letterSubject(1, 0), letterSubject(2, 0)}, 0, 2},
		"a second replay of one failure is refused after": {[]any{deadLetter(0, 0), replay, deadLetter(1, 0), replay}, rag.LetterWaiting, []rag.Subject{letterSubject(1, 0)}, 1, 2},
		"a replay of a failure that is not there yet":     {[]any{deadLetter(0, 0), replayAgain}, rag.LetterWaiting, nil, 1, 1},
		"a discard gives one failure up, not a later one": {[]any{deadLetter(0, 0), replay, deadLetter(1, 0), discard}, rag.LetterWaiting, []rag.Subject{letterSubject(1, 0)}, 1, 2},
		"the later one is discarded by its own":           {[]any{deadLetter(0, 0), replay, deadLetter(1, 0), discardAgain}, rag.LetterDiscarded, []rag.Subject{letterSubject(1, 0)}, 0, 2},
		"closed by superseded it is superseded":           {[]any{deadLetter(0, 0), replay, closing(1, rag.StatusSuperseded)}, rag.LetterSuperseded, []rag.Subject{letterSubject(1, 0)}, 0, 1},
		"closed by unchanged it is resolved":              {[]any{deadLetter(0, 0), replay, closing(1, rag.StatusUnchanged)}, rag.LetterResolved, []rag.Subject{letterSubject(1, 0)}, 0, 1},
		"discarded":                                       {[]any{deadLetter(0, 0), discard}, rag.LetterDiscarded, nil, 0, 1},
		"discarded, not replayed":                         {[]any{deadLetter(0, 0), discard, replay}, rag.LetterDiscarded, nil, 1, 1},
		"resolved wins over discarded":                    {[]any{deadLetter(0, 0), discard, closing(0, rag.StatusIndexed)}, rag.LetterResolved, nil, 0, 1},
		"a replay that runs is not discarded":             {[]any{deadLetter(0, 0), replay, discard}, rag.LetterReplaying, []rag.Subject{letterSubject(1, 0)}, 1, 1},
		"a retry waits for its time":                      {[]any{schedule1}, rag.LetterScheduled, nil, 0, 1},
		"a scheduled retry is not replayed by hand":       {[]any{schedule1, replay}, rag.LetterScheduled, nil, 1, 1},
		"when due it is sent":                             {[]any{schedule1, due1}, rag.LetterSent, []rag.Subject{letterSubject(0, 1)}, 0, 1},
		"a doubled timer sends it once":                   {[]any{schedule1, due1, due1}, rag.LetterSent, []rag.Subject{letterSubject(0, 1)}, 0, 1},
		"the timer of another attempt sends nothing":      {[]any{schedule1, schedule2, due1}, rag.LetterScheduled, nil, 0, 2},
		"the next attempt is scheduled":                   {[]any{schedule1, due1, schedule2}, rag.LetterScheduled, []rag.Subject{letterSubject(0, 1)}, 0, 2},
		"an earlier attempt is not scheduled again":       {[]any{schedule2, schedule1}, rag.LetterScheduled, nil, 0, 2},
		"attempts spent":                                  {[]any{schedule1, due1, schedule2, command(rag.CommandDue, 0, 2), deadLetter(0, 2)}, rag.LetterWaiting, []rag.Subject{letterSubject(0, 1), letterSubject(0, 2)}, 0, 3},
		"a final of an earlier attempt closes a schedule": {[]any{schedule1, closing(0, rag.StatusIndexed), due1}, rag.LetterResolved, nil, 0, 1},
		"a late schedule opens nothing":                   {[]any{deadLetter(0, 0), schedule1}, rag.LetterWaiting, nil, 0, 1},
		"a late letter opens nothing":                     {[]any{deadLetter(0, 0), replay, closing(1, rag.StatusIndexed), deadLetter(0, 0)}, rag.LetterResolved, []rag.Subject{letterSubject(1, 0)}, 0, 1},
		"a retry within a replay":                         {[]any{deadLetter(0, 2), replay, command(rag.CommandSchedule, 1, 1), command(rag.CommandDue, 1, 1)}, rag.LetterSent, []rag.Subject{letterSubject(1, 0), letterSubject(1, 1)}, 0, 4},
	} {
		t.Run(name, func(t *testing.T) {
			row, replays, refused := lettered(t, c.things...)
			if row.State != c.want || refused != c.refused || row.Attempts != c.attempts {
				t.Errorf("%s, %d attempts, %d refusals; want %s, %d, %d", row.State, row.Attempts, refused, c.want, c.attempts, c.refused)
			}
			var subjects []rag.Subject
			for _, r := range replays {
				subjects = append(subjects, r.Subject)
				if !reflect.DeepEqual(r.Original, original) || r.Position.Partition != 3 {
					t.Errorf("the replay is not the document record: %+v", r)
				}
			}
			if !reflect.DeepEqual(subjects, c.replays) {
				t.Errorf("replays %v, want %v", subjects, c.replays)
			}
		})
	}
}

func TestARedeliveredCommandRepeatsItsReplay(t *testing.T) {
	for name, things := range map[string][]any{
		"replay": {deadLetter(0, 0), command(rag.CommandReplay, 0, 0)},
		"due":    {command(rag.CommandSchedule, 0, 1), command(rag.CommandDue, 0, 1)},
	} {
		row, replays, _ := lettered(t, things...)
		next, again, refused := ledger.ApplyCommand(row, things[1].(rag.Command), commands, 2)
		if next != row || refused || again == nil || !reflect.DeepEqual(*again, replays[0]) {
			t.Errorf("%s again gives %+v (refused %v)", name, again, refused)
		}
	}
}

func TestACommandBeforeTheLastHasHadItsEffect(t *testing.T) {
	replay, replayAgain := command(rag.CommandReplay, 0, 0), command(rag.CommandReplay, 1, 0)
	for name, c := range map[string]struct {
		things []any
		cause  rag.Version // of the redelivered replay
	}{
		"the last, when its run has died": {[]any{deadLetter(0, 0), replay, deadLetter(1, 0)}, 2},
		"an earlier one, when one waits":  {[]any{deadLetter(0, 0), replay, deadLetter(1, 0), replayAgain, deadLetter(2, 0)}, 2},
		"an earlier one, when one runs":   {[]any{deadLetter(0, 0), replay, deadLetter(1, 0), replayAgain}, 2},
	} {
		row, _, _ := lettered(t, c.things...)
		if next, again, refused := ledger.ApplyCommand(row, replay, commands, c.cause); next != row || again != nil || refused {
			t.Errorf("%s: with offsets reset it runs again: %+v", name, again)
		}
	}
	row, _, _ := lettered(t, deadLetter(0, 0), replay, deadLetter(1, 0))
	if _, again, _ := ledger.ApplyCommand(row, replayAgain, commands, 9); again == nil || again.Revision != rev(1, 2) {
		t.Errorf("a new command gives %+v", again)
	}
}

func TestWhatALetterKeeps(t *testing.T) {
	t.Run("a schedule that never died drops the document", func(t *testing.T) {
		row, _, _ := lettered(t, command(rag.CommandSchedule, 0, 1), closing(0, rag.StatusIndexed))
		if !reflect.DeepEqual(row.Original, rag.Raw{}) {
			t.Errorf("kept %+v", row.Original)
		}
	})
	t.Run("one that died keeps it", func(t *testing.T) {
		row, _, _ := lettered(t, deadLetter(0, 0), command(rag.CommandReplay, 0, 0), closing(1, rag.StatusIndexed))
		if !reflect.DeepEqual(row.Original, original) || row.Failure.Reason != "broken_file" {
			t.Errorf("kept %+v", row)
		}
	})
	t.Run("the first failure and the last", func(t *testing.T) {
		row, _, _ := lettered(t, command(rag.CommandSchedule, 0, 1), deadLetter(0, 1))
		if !row.FirstFailed.Equal(noon) || !row.LastFailed.Equal(noon.Add(time.Minute)) || row.Failure.Reason != "broken_file" {
			t.Errorf("row %+v", row)
		}
	})
	t.Run("why it was discarded", func(t *testing.T) {
		discard := command(rag.CommandDiscard, 0, 0)
		discard.Reason = "a test file"
		if row, _, _ := lettered(t, deadLetter(0, 0), discard); row.Reason != "a test file" {
			t.Errorf("row %+v", row)
		}
	})
}

func TestALetterWithoutItsDocumentIsNotReplayed(t *testing.T) {
	lost := deadLetter(0, 0)
	lost.Original, lost.Lost = rag.Raw{}, "the record was compacted away"
	if row, replays, refused := lettered(t, lost, command(rag.CommandReplay, 0, 0)); row.State != rag.LetterWaiting || len(replays) > 0 || refused != 1 {
		t.Errorf("%s, replays %v, refused %d", row.State, replays, refused)
	}
}

func TestNothingIsKnownOfALetter(t *testing.T) {
	for _, kind := range []rag.CommandKind{rag.CommandReplay, rag.CommandDiscard, rag.CommandDue, 99} {
		next, replay, refused := ledger.ApplyCommand(nil, command(kind, 0, 0), commands, 1)
		if next != nil || replay != nil || refused != (kind == rag.CommandReplay || kind == rag.CommandDiscard) {
			t.Errorf("command %d: %+v, %+v, refused %v", kind, next, replay, refused)
		}
	}
	if row, _, _ := ledger.ApplyCommand(nil, closing(0, rag.StatusIndexed), commands, 1); row.State != rag.LetterResolved {
		t.Errorf("closed: %+v", row)
	}
}

func TestTheTimerOfALetter(t *testing.T) {
	row, _, _ := lettered(t, command(rag.CommandSchedule, 0, 1))
	if at, ok := ledger.NextDue(row); !ok || !at.Equal(noon.Add(time.Second)) {
		t.Errorf("due at %v (%v)", at, ok)
	}
	row, _, _ = lettered(t, command(rag.CommandSchedule, 0, 1), command(rag.CommandDue, 0, 1))
	if _, ok := ledger.NextDue(row); ok || row.Shown() != rag.LetterReplaying {
		t.Errorf("sent, it has a timer, or is shown as %s", row.Shown())
	}
	if !row.Due.Equal(noon.Add(time.Second)) {
		t.Error("the row lost the due time before the outcome arrived")
	}
	if _, ok := ledger.NextDue(nil); ok {
		t.Error("no letter has a timer")
	}
}
