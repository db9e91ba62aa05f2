package checkpoint_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// Whatever row is read from a table, whoever wrote it: it merges, and a message that it knows is known after it was applied.
func FuzzRow(f *testing.F) {
	f.Add([]byte(`{"state":{"Balance":3},"count":1,"logs":{"t":{"next":{"epoch":0,"offset":6},"seen":{"a":{"epoch":0,"offset":5,"at":1,"outcome":3}}}}}`), int64(5), "a")
	f.Add([]byte(`{"logs":{"t":{"seen":null},"u":{}}}`), int64(-1), "")
	f.Add([]byte(`{"logs":null}`), int64(0), "sha256:x")
	f.Add([]byte(`{"logs":{"t":{"next":{"epoch":-1,"offset":9223372036854775807},"floor":{"epoch":9,"offset":-9}}}}`), int64(1)<<62, "\xff")
	f.Fuzz(func(t *testing.T, value []byte, offset int64, id string) {
		var r row
		if json.Unmarshal(value, &r) != nil {
			return
		}
		rs := rules{Now: func() time.Time { return noon }}
		if got := rs.Merge(&r, &r); !reflect.DeepEqual(got, &r) {
			t.Fatalf("merged with itself %+v is %+v", r, got)
		}
		before := show(r)
		m := at(offset, id)
		res, err := rs.Apply(&r, m, func(a account) (account, int, error) { return a, 7, nil })
		if show(r) != before {
			t.Fatalf("applying changed the row")
		}
		if err != nil || res.Row == nil {
			return
		}
		again, err := rs.Apply(res.Row, m, func(account) (account, int, error) {
			t.Fatal("a message is applied twice")
			return account{}, 0, nil
		})
		if err != nil || again.Row != res.Row || again.Outcome != res.Outcome {
			t.Fatalf("again: %+v, %v", again, err)
		}
		if _, err := json.Marshal(res.Row); err != nil {
			t.Fatal(err)
		}
	})
}
