package rag

import "time"

// Letter is a record of the dead-letters topic: a version that died, with its document record byte for byte.
type Letter struct {
	ID string // Position.String() of the document record
	Subject
	Position Position
	Failure  Failure
	// Original is the document record; Lost says that it could not be kept, and why ("" normally).
	Original    Raw
	Lost        string
	FirstFailed time.Time
	LastFailed  time.Time
}

// CommandKind says what a record of the commands topic asks of the dead-letter group.
type CommandKind int

// Kinds of commands, all keyed by letter id.
const (
	CommandSchedule CommandKind = iota + 1 // an automatic retry, due at Due
	CommandClose                           // a final other than dead: closes the letter of every attempt
	CommandReplay                          // an operator asks for a new generation
	CommandDiscard                         // an operator gives the version up
	CommandDue                             // the dead-letter group's own timer: the schedule's time has come
)

// Command is a record of the commands topic.
type Command struct {
	Kind     CommandKind
	LetterID string
	Subject
	At       time.Time
	Status   Status // close: the final status
	Due      time.Time
	Failure  *Failure // schedule
	Position Position // schedule, close
	Original Raw      // schedule: the document record
	Reason   string   // discard: why, in the operator's words
}

// Replay is a record of the replays topic: the document record again, with its version, generation and attempt.
type Replay struct {
	Subject
	Position Position
	Original Raw
}

// LetterState is what became of a letter.
type LetterState string

// States of a letter.
const (
	LetterWaiting    LetterState = "waiting"
	LetterScheduled  LetterState = "scheduled"
	LetterSent       LetterState = "sent" // an automatic retry runs; shown as replaying
	LetterReplaying  LetterState = "replaying"
	LetterResolved   LetterState = "resolved"
	LetterSuperseded LetterState = "superseded"
	LetterDiscarded  LetterState = "discarded"
)
