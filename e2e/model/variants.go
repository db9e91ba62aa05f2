package model

import (
	"fmt"
	"slices"
	"strings"
)

// A run can leave the protocol in three ways, each to show that the model would notice: a Mutant is a bug brought back, a
// Hole is a wording of the contract that breaks a promise, opened again, and a Rule is left out to see what needs it.

// Mutant is a bug that an implementation may have.
type Mutant string

// Mutants.
const (
	MutAcksOne              Mutant = "acks=1"
	MutNewestOffset         Mutant = "newest offset"
	MutUnorderedCommit      Mutant = "unordered commit"
	MutDropOnSeen           Mutant = "drop on seen"
	MutRandomChunkIDs       Mutant = "random chunk ids"
	MutItemErrorsIgnored    Mutant = "ignored item errors"
	MutNoStaleDelete        Mutant = "no stale delete"
	MutCommitBeforeUpsert   Mutant = "commit before upsert"
	MutLetterReencoded      Mutant = "dead letter re-encoded"
	MutWallClockVersions    Mutant = "versions by wall clock"
	MutRowNotWrittenAgain   Mutant = "row not written again on redelivery"
	MutRemoveAllOthers      Mutant = "remove all other versions"
	MutUnchangedUnconfirmed Mutant = "unchanged against an unconfirmed version"
	MutRowsOverwritten      Mutant = "rows overwritten instead of merged"
	MutTwoAuthors           Mutant = "two authors of the final status"
	MutLetterHoldsChunk     Mutant = "letter holds the chunk"
	MutAmbiguousIsDone      Mutant = "ambiguous counts as done"
	MutOutageIsAttempt      Mutant = "outage counts as an attempt"
	MutCacheHitSaysNothing  Mutant = "cache hit without output"
)

// Hole is a wording that sounds right and is not.
type Hole string

// Holes.
const (
	H1  Hole = "H1"  // the fence moves when a version is accepted: a healthy version is superseded by one that dies
	H2  Hole = "H2"  // only lower versions are removed: chunks of a dead or unchanged version stay
	H3  Hole = "H3"  // the completing receipt removes at once: a reader whose view is late sees a gap
	H3b Hole = "H3b" // ... and before the row is acknowledged
	H3c Hole = "H3c" // the due removal's clock starts at the decision, not at the acknowledgement of the row
	H4  Hole = "H4"  // receipts on a topic of their own: two owners see two orders and say two finals
	H5  Hole = "H5"  // a reused message id dies under the id of the first submission
	H6  Hole = "H6"  // a replay writes the same chunk ids: a late removal of the dead generation takes them away
	H7  Hole = "H7"  // a timer's send and row are held by no offset: a crash loses the automatic replay
	H8  Hole = "H8"  // the owner does not read its table: a zombie's late row is the last one, compaction removes the good one
	H9  Hole = "H9"  // with H4: the final is said before the row is acknowledged; a crash is enough
	H10 Hole = "H10" // accepted does not count the dead: unchanged against a version that a replay replaces
	H11 Hole = "H11" // a final of an earlier attempt does not close the letter of the retry
	H12 Hole = "H12" // with H4: rows merge field by field; a deleted entry comes back by every merge
	H13 Hole = "H13" // a forgotten message id makes an old position new
	H14 Hole = "H14" // a forwarded record comes again after its id was forgotten: old content wins
	H15 Hole = "H15" // a late word on a forgotten version at or above the fence says a second final
	H16 Hole = "H16" // a late word on a forgotten version says a second final
	H17 Hole = "H17" // the tracker's row is keyed by message id alone: two documents share it
	H18 Hole = "H18" // the final of a replayed version is forgotten: a late word says a second one
	H19 Hole = "H19" // a reused id is not recognised on a redelivery, once the id's first use was forgotten
	H20 Hole = "H20" // offsets of the commands are reset: an operator's replay runs again
	H21 Hole = "H21" // a command takes whatever failure waits: the second of two replays the failure of the first's replay
	H22 Hole = "H22" // the final of a version is forgotten before the chunker has spoken of an earlier one

	allHoles Hole = "all"
)

// Rule is one that can be left out.
type Rule string

// Rules that can be left out.
const (
	RuleSession             Rule = "session check"
	RuleRemovalWaits        Rule = "removal waits for upserts"
	RuleDueRemoval          Rule = "due removal"
	RuleStrayReceipt        Rule = "stray receipt"
	RuleFenceBeforeWrite    Rule = "fence before write"
	RuleApplied             Rule = "applied"
	RuleUnchanged           Rule = "unchanged"
	RuleFirstRemovesNothing Rule = "first version removes nothing"
	RuleFenceAtChunker      Rule = "fence at the chunker"
	RuleTableLag            Rule = "table compaction lag"
	RuleOneInFlight         Rule = "one request in flight"
)

// Rules lists them; several at once are Cfg.Drop.
func Rules() []Rule {
	return []Rule{RuleSession, RuleRemovalWaits, RuleDueRemoval, RuleStrayReceipt, RuleFenceBeforeWrite, RuleApplied, RuleUnchanged,
		RuleFirstRemovesNothing, RuleFenceAtChunker, RuleTableLag, RuleOneInFlight}
}

// Caught is a mutant with a seed that catches it.
type Caught struct {
	Mutant Mutant
	Seed   uint64
}

// Mutants is the gate of the model itself: each must be caught.
func Mutants() []Caught {
	return []Caught{
		{MutAcksOne, 8}, {MutNewestOffset, 1}, {MutUnorderedCommit, 1}, {MutDropOnSeen, 637}, {MutRandomChunkIDs, 4},
		{MutItemErrorsIgnored, 5}, {MutNoStaleDelete, 1}, {MutCommitBeforeUpsert, 1}, {MutLetterReencoded, 1},
		{MutWallClockVersions, 1}, {MutRowNotWrittenAgain, 950}, {MutRemoveAllOthers, 1}, {MutUnchangedUnconfirmed, 43},
		{MutRowsOverwritten, 2}, {MutTwoAuthors, 45}, {MutLetterHoldsChunk, 1}, {MutAmbiguousIsDone, 1}, {MutOutageIsAttempt, 945},
		{MutCacheHitSaysNothing, 1},
	}
}

// Opened is a hole (or several, where one needs the other) with a seed that shows it.
type Opened struct {
	Unfix []Hole
	Keep  int
	Seed  uint64
}

// Holes lists those that a random schedule shows. The others are in Scenarios.
func Holes() []Opened {
	return []Opened{
		{[]Hole{H1}, 0, 6}, {[]Hole{H2}, 0, 17}, {[]Hole{H3}, 0, 2}, {[]Hole{H3, H3b}, 0, 2}, {[]Hole{H4}, 0, 100}, {[]Hole{H4, H9}, 0, 639},
		{[]Hole{H4, H12}, 0, 2}, {[]Hole{H5}, 0, 1}, {[]Hole{H6}, 0, 53}, {[]Hole{H7}, 0, 127}, {[]Hole{H8}, 0, 101}, {[]Hole{H11}, 0, 1921},
		{[]Hole{H13}, 2, 450}, {[]Hole{H14}, 2, 102}, {[]Hole{H15}, 2, 8}, {[]Hole{H18}, 2, 2972}, {[]Hole{H17}, 0, 93}, {[]Hole{H16}, 2, 37},
		{[]Hole{H20, H21}, 0, 1632},
	}
}

// Scenario is a schedule that shows a hole which random schedules rarely hit.
type Scenario struct {
	Hole   Hole
	Keep   int
	Events []Ev
}

// Scenarios by hand.
func Scenarios() []Scenario {
	return []Scenario{
		{H10, 0, []Ev{{50, "put", 0, 0, "A1"}, {250, "reuse", 0, 0, "B1"}, {400, "replay", 0, 1, ""}, {480, "put", 0, 0, "A1"}}},
		{H3c, 0, stalledTable()},
		{H19, 2, crashAfterReuse()},
		{H22, 2, stalledProgress()},
		{H21, 0, []Ev{{50, "put", 0, 0, "P1"}, {250, "replay", 0, 0, ""}, {450, "stale replay", 0, 0, ""}}},
	}
}

// stalledTable: the indexers' sends stall just when the second version is complete.
func stalledTable() []Ev {
	evs := []Ev{{50, "put", 0, 0, "A1"}, {250, "put", 0, 0, "C1"}}
	for at := 295; at < 1200; at += 145 {
		for _, pod := range []string{"indexer0", "indexer1", "indexer2"} {
			evs = append(evs, Ev{at, "delay", 0, 145, pod})
		}
	}
	return evs
}

// stalledProgress: what the chunkers say of the first version is late, and later ones die at the embedder meanwhile.
func stalledProgress() []Ev {
	evs := []Ev{{60, "put", 0, 0, "P1"}}
	for _, pod := range []string{"chunker0", "chunker1", "chunker2"} {
		evs = append(evs, Ev{40, "stall", 0, 400, pod})
	}
	for i := range 5 {
		evs = append(evs, Ev{80 + 20*i, "put", 0, 0, "Q1"})
	}
	return evs
}

// crashAfterReuse: the chunkers die with the verdict on a reused id unsent, when a later record has made its row forget the
// first use.
func crashAfterReuse() []Ev {
	return []Ev{{50, "put", 0, 0, "A1"}, {300, "delay", 0, 140, "chunker0"}, {300, "delay", 0, 140, "chunker1"},
		{302, "reuse", 0, reuseRemembered, "B1"}, {330, "put", 0, 0, "C1"}, {400, "crash", 0, 5, "chunker0"}, {400, "crash", 0, 5, "chunker1"}}
}

func (s *Sim) mut(m Mutant) bool { return s.cfg.Mutant == m }

func (s *Sim) drop(r Rule) bool { return slices.Contains(s.cfg.Drop, r) }

// fix: the hole is closed.
func (s *Sim) fix(h Hole) bool {
	return !slices.Contains(s.cfg.Unfix, h) && !slices.Contains(s.cfg.Unfix, allHoles)
}

// ParseMutant reads a name; "" is none.
func ParseMutant(name string) (Mutant, error) {
	for _, m := range Mutants() {
		if string(m.Mutant) == name {
			return m.Mutant, nil
		}
	}
	if name != "" {
		return "", fmt.Errorf("there is no mutant %q", name)
	}
	return "", nil
}

// ParseHoles reads a comma-separated list; "all" is every one.
func ParseHoles(list string) ([]Hole, error) {
	known := []Hole{allHoles}
	for _, h := range Holes() {
		known = append(known, h.Unfix...)
	}
	for _, s := range Scenarios() {
		known = append(known, s.Hole)
	}
	return parse("hole", list, known)
}

// ParseRules reads a comma-separated list.
func ParseRules(list string) ([]Rule, error) { return parse("rule", list, Rules()) }

func parse[T ~string](what, list string, known []T) (out []T, err error) {
	for _, x := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		v := T(strings.TrimSpace(x))
		if !slices.Contains(known, v) {
			return nil, fmt.Errorf("there is no %s %q", what, v)
		}
		out = append(out, v)
	}
	return out, nil
}
