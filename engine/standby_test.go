package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/stage"
)

// A process on standby holds the rows of partitions that are another's while they change, and goes on from them when it
// takes over. One that is not on standby does not.
func TestStandbyFollowsTheTablesOfOthers(t *testing.T) {
	for _, standby := range []bool{true, false} {
		t.Run(fmt.Sprint(standby), func(t *testing.T) {
			w := newWorld(t)
			g := group(t,
				engine.Input(in, func(_ context.Context, m stage.Message[string], row *counts) (stage.Result[counts], error) {
					next := seen(row, m)
					return stage.Result[counts]{Row: next, Said: []stage.Output{said.Record(m.Key, fmt.Sprint(len(next.Last)))}}, nil
				}),
				engine.Table(countsCodec{}, mergeCounts),
			)
			key := "k"
			partition := kafka.PartitionOf([]byte(key), partitions)
			w.send(key, "0")
			a := w.env("a")
			stopA := w.runIn(a, g)
			w.waitFor("said", 1)
			b := w.env("b")
			b.Standby = standby
			stopB := w.runIn(b, g)
			owned := func(e engine.Env) bool {
				_, open := e.Stores.Get("g-table", partition)
				return open
			}
			other := kafka.PartitionOf([]byte(otherKey(partition)), partitions)
			kafkatest.Wait(t, "b to take a partition", func() bool {
				_, open := b.Stores.Get("g-table", other)
				return open || owned(b)
			})
			kafkatest.Wait(t, "a partition for each", func() bool {
				_, aHasOther := a.Stores.Get("g-table", other)
				_, aHasIt := a.Stores.Get("g-table", partition)
				return aHasOther != aHasIt
			})
			if !owned(a) { // the partition of the key went to b: look from the other side
				key, partition, other = otherKey(partition), other, partition
			}
			const n = 20
			before := len(w.values("said"))
			for i := range n {
				w.send(key, fmt.Sprint("more ", i))
			}
			w.waitFor("said", before+n)
			if standby {
				kafkatest.Wait(t, "b to hold the row that a writes", func() bool {
					st, open := b.Stores.Get("g-table", partition)
					if !open {
						return false
					}
					value, err := st.Get(key)
					if err != nil || value == nil {
						return false
					}
					row, err := countsCodec{}.Decode(value)
					return err == nil && len(row.Last) >= n
				})
			} else if _, open := b.Stores.Get("g-table", partition); open {
				t.Error("a process that is not on standby follows another's table")
			}
			had := len(w.values("said"))
			stopA()
			w.send(key, "last")
			all := w.waitFor("said", had+1)
			if got := all[len(all)-1]; got != fmt.Sprint(n+1) && got != fmt.Sprint(n+2) {
				t.Errorf("the one that took over has seen %s messages of %d", got, n+1)
			}
			stopB()
		})
	}
}

// otherKey is a key of another partition.
func otherKey(not int32) string {
	for i := 0; ; i++ {
		if key := fmt.Sprint("key-", i); kafka.PartitionOf([]byte(key), partitions) != not {
			return key
		}
	}
}
