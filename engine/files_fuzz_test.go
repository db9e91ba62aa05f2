package engine

import (
	"errors"
	"log/slog"
	"os"
	"testing"
)

// The files in a data folder may be half written, damaged, or another release's. What cannot be read is refused with a
// typed error, or begins anew; it never ends the process.
func FuzzFilesOfTheDataFolder(f *testing.F) {
	for _, content := range []string{`{"topic@0-1":2}`, `null`, `{"a":-9}`, `{"a":1e99}`, `{"epoch":1,"topics":{"a":"b"}}`, `{"topics":null}`, `[`, ``} {
		f.Add([]byte(content))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte) {
		r := &runner{group: &Group{}, log: slog.New(slog.DiscardHandler), env: Env{Journal: dir + "/running"}.withDefaults()}
		if err := os.WriteFile(r.env.Journal+".suspects", content, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := openSuspects(r)
		if err != nil {
			t.Fatal(err)
		}
		s.counts["it can be counted on"]++
		if err := s.close(); err != nil {
			t.Fatal(err)
		}

		d := &dataDir{path: dir}
		if err := d.write(identitiesFile, content); err != nil {
			t.Fatal(err)
		}
		_, err = d.identities()
		var typed *DataDirError
		if err != nil && !errors.As(err, &typed) {
			t.Fatalf("%T: %v", err, err)
		}
	})
}
