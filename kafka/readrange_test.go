package kafka_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
)

func TestReaderReadsARange(t *testing.T) {
	cfg := kafkatest.Start(t, kafkatest.Topic("t", 1))
	for i := range 10 { // one batch each
		kafkatest.Produce(t, cfg, kafka.Record{Topic: "t", Value: fmt.Append(nil, i)})
	}
	r, ctx := newReader(t, cfg), kafkatest.Context(t)
	read := func(from, to int64) (offsets []int64, err error) {
		err = r.Range(ctx, "t", 0, from, to, func(rec kafka.Record) error { offsets = append(offsets, rec.Offset); return nil })
		return offsets, err
	}
	for _, tc := range []struct {
		from, to int64
		want     []int64
	}{{3, 6, []int64{3, 4, 5}}, {0, 1, []int64{0}}, {8, 100, []int64{8, 9}}, {6, 6, nil}, {7, 3, nil}} {
		if got, err := read(tc.from, tc.to); err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("from %d to %d: %v, %v, want %v", tc.from, tc.to, got, err, tc.want)
		}
	}
	enough := errors.New("enough")
	seen := 0
	err := r.Range(ctx, "t", 0, 0, 10, func(kafka.Record) error {
		if seen++; seen == 4 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || seen != 4 {
		t.Errorf("%d records were read after the callback had enough at the fourth: %v", seen, err)
	}
}

func TestReaderFindsOffsetsByTime(t *testing.T) {
	cfg := kafkatest.Start(t, kafkatest.Topic("t", 1))
	noon := time.Now().Add(-time.Hour).Truncate(time.Second)
	for i := range 5 {
		kafkatest.Produce(t, cfg, kafka.Record{Topic: "t", Value: fmt.Append(nil, i), Timestamp: noon.Add(time.Duration(i) * time.Minute)})
	}
	r, ctx := newReader(t, cfg), kafkatest.Context(t)
	for after, want := range map[time.Duration]int64{-time.Hour: 0, 0: 0, time.Second: 1, 2 * time.Minute: 2, 4 * time.Minute: 4, time.Hour / 2: 5} {
		if got, err := r.OffsetAt(ctx, "t", 0, noon.Add(after)); err != nil || got != want {
			t.Errorf("the offset %v after the first record is %d, %v, want %d", after, got, err, want)
		}
	}
	if _, err := r.OffsetAt(ctx, "missing", 0, noon); err == nil {
		t.Error("an offset of a topic that does not exist")
	}
}
