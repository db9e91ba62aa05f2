package checkpoint_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/waymarkhq/waymark/checkpoint"
)

// BenchmarkApply is what a message costs at a row that remembers so many: the decision, and the row as JSON.
func BenchmarkApply(b *testing.B) {
	for _, n := range []int{16, 256, 1024} {
		b.Run(fmt.Sprint(n, " remembered"), func(b *testing.B) {
			r := rules{Keep: checkpoint.Keep{Least: n, Most: n}}
			var last *row
			offset, size := int64(0), 0
			next := func() {
				m := at(offset, fmt.Sprintf("p-%08d", offset))
				m.Committed = offset
				offset++
				last = apply(b, r, last, m, 1).Row
			}
			for range n {
				next()
			}
			for b.Loop() {
				next()
				encoded, err := json.Marshal(last)
				if err != nil {
					b.Fatal(err)
				}
				size = len(encoded)
			}
			b.ReportMetric(float64(size), "bytes/row")
		})
	}
}
