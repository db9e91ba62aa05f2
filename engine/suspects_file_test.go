package engine

import (
	"encoding/json"
	"os"
	"sync"
	"testing"
)

// A process may be killed while it writes what it suspects: the one after it must find the whole of it, or of what was
// there before. Otherwise a message that kills processes is never found.
func TestSuspicionsAreNeverHalfWritten(t *testing.T) {
	r := &runner{group: &Group{}, env: Env{Journal: t.TempDir() + "/running"}.withDefaults()}
	s, err := openSuspects(r)
	if err != nil {
		t.Fatal(err)
	}
	s.counts["topic@0-1"] = 2
	if err := s.write(); err != nil {
		t.Fatal(err)
	}
	var writing sync.WaitGroup
	done := make(chan struct{})
	writing.Go(func() {
		defer close(done)
		for range 2000 {
			if err := s.write(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		var counts map[string]int
		b, err := os.ReadFile(s.countsFile())
		if err == nil {
			err = json.Unmarshal(b, &counts)
		}
		if err != nil || counts["topic@0-1"] != 2 {
			t.Errorf("in between there stands %q (%v)", b, err)
			break
		}
	}
	writing.Wait()
	if err := s.close(); err != nil {
		t.Error(err)
	}
}
