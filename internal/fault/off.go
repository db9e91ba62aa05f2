//go:build !faults

package fault

import "time"

// Hit does nothing in this build.
func Hit(string) {}

// Happens is false in this build.
func Happens(string) bool { return false }

// Trace does nothing in this build.
func Trace(string, any, string, int32, int64) {}

// Parse does nothing in this build.
func Parse([]byte) {}

// NextFormat is what no release is yet: it reads and writes the formats of today.
func NextFormat() (reads, writes bool) { return false, false }

// Now is time.Now in this build.
func Now() time.Time { return time.Now() }
