package main

import (
	"fmt"
	"time"
)

// moment is a time on the command line: as of RFC 3339, or how long ago.
type moment struct {
	at  time.Time
	ago time.Duration
	set bool
}

// UnmarshalText is called by the parser.
func (m *moment) UnmarshalText(text []byte) error {
	if at, err := time.Parse(time.RFC3339Nano, string(text)); err == nil {
		*m = moment{at: at, set: true}
		return nil
	}
	ago, err := time.ParseDuration(string(text))
	switch {
	case err != nil:
		return fmt.Errorf("%q is neither a time as of RFC 3339, such as 2026-01-02T15:04:05Z, nor a duration such as 2h", text)
	case ago < 0:
		return fmt.Errorf("%q is below 0", text)
	}
	*m = moment{ago: ago, set: true}
	return nil
}

// time is the moment as seen from now; the zero time if it was not given.
func (m moment) time(now time.Time) time.Time {
	if !m.set || !m.at.IsZero() {
		return m.at
	}
	return now.Add(-m.ago)
}

// between are the times of --since and --until, as seen from now.
func between(since, until moment) (from, to time.Time, err error) {
	now := time.Now()
	from, to = since.time(now), until.time(now)
	if since.set && until.set && !from.Before(to) {
		return from, to, usageError("--until: it is not after --since")
	}
	return from, to, nil
}
