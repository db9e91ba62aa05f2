package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// ErrGone is returned where there is no record and never will be: it was compacted away or deleted, it never was
// one (a transaction marker), or the log ends before it.
var ErrGone = errors.New("no record at this position")

const (
	// readTimeoutTotal bounds one read with all its retries where the caller's context does not.
	readTimeoutTotal = 10 * time.Second
	readRetryPause   = 100 * time.Millisecond
	readerFetchBytes = mebibyte
	fetchWaitMillis  = 250
)

// Reader reads records by their position. It keeps its connections; its owner closes it. All methods may be called
// concurrently.
type Reader struct {
	client  sarama.Client
	pending sync.WaitGroup // requests that nobody waits for any more
}

// NewReader connects. It fails when no broker answers.
func NewReader(cfg Config) (*Reader, error) {
	conf, err := cfg.Sarama(func(s *sarama.Config) {
		s.Net.ReadTimeout = readTimeoutTotal
		s.Metadata.Retry.Max = 1 // Reader itself tries again
	})
	if err != nil {
		return nil, err
	}
	client, err := sarama.NewClient(cfg.Brokers, conf)
	if err != nil {
		return nil, fmt.Errorf("connect to kafka at %s: %w", strings.Join(cfg.Brokers, ","), err)
	}
	return &Reader{client: client}, nil
}

// Close ends the reader; reads that run end with an error.
func (r *Reader) Close() error {
	err := r.client.Close()
	r.pending.Wait()
	if err != nil {
		return fmt.Errorf("close kafka reader: %w", err)
	}
	return nil
}

// Read returns the record at a position, or an error that is ErrGone. It tries again while leaders move, until ctx ends
// or 10 s are over; such an error is an outage.
func (r *Reader) Read(ctx context.Context, topic string, partition int32, offset int64) (Record, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeoutTotal)
	defer cancel()
	var found Record
	err := r.retry(ctx, topic, func() error {
		f, err := r.fetch(ctx, topic, partition, offset)
		if err != nil {
			return err
		}
		for _, rec := range f.records {
			if rec.Offset == offset {
				found = rec
				return nil
			}
		}
		if f.next > offset || offset >= f.end {
			return ErrGone
		}
		return fmt.Errorf("the broker returned nothing below offset %d", f.end)
	})
	if err != nil {
		return Record{}, fmt.Errorf("read %s partition %d offset %d: %w", topic, partition, offset, err)
	}
	return found, nil
}

// Each calls do for every record of a partition, from the oldest to the newest at the time of the call. It ends at the
// first error of do. Every fetch may take 10 s.
func (r *Reader) Each(ctx context.Context, topic string, partition int32, do func(Record) error) error {
	oldest, newest, err := r.Offsets(ctx, topic, partition)
	if err != nil {
		return err
	}
	return r.Range(ctx, topic, partition, oldest, newest, do)
}

// Range does the same for the records from offset from up to, and without, offset to. An error that is ErrGone means that
// the log no longer reaches down to from.
func (r *Reader) Range(ctx context.Context, topic string, partition int32, from, to int64, do func(Record) error) error {
	for at := from; at < to; {
		var f fetched
		if err := r.bounded(ctx, topic, func(ctx context.Context) (err error) {
			if f, err = r.fetch(ctx, topic, partition, at); err == nil && f.next == at && at < f.end {
				err = fmt.Errorf("the broker returned nothing below offset %d", f.end)
			}
			return err
		}); err != nil {
			return fmt.Errorf("read %s partition %d offset %d: %w", topic, partition, at, err)
		}
		for _, rec := range f.records {
			if rec.Offset >= to {
				return nil
			}
			if err := do(rec); err != nil {
				return err
			}
		}
		if f.next == at {
			return nil
		}
		at = f.next
	}
	return nil
}

// OffsetAt is the offset of the oldest record of a partition whose timestamp is not before t, or the one that its next
// record will get.
func (r *Reader) OffsetAt(ctx context.Context, topic string, partition int32, t time.Time) (int64, error) {
	offset := int64(-1)
	err := r.bounded(ctx, topic, func(ctx context.Context) error {
		return r.await(ctx, func() (err error) {
			if offset, err = r.client.GetOffset(topic, partition, t.UnixMilli()); err == nil && offset < 0 {
				offset, err = r.client.GetOffset(topic, partition, sarama.OffsetNewest)
			}
			return err
		})
	})
	if err != nil {
		return 0, fmt.Errorf("offset of %s partition %d at %s: %w", topic, partition, t.UTC().Format(time.RFC3339), err)
	}
	return offset, nil
}

// Offsets are the offset of the oldest record of a partition and the one that its next record will get.
func (r *Reader) Offsets(ctx context.Context, topic string, partition int32) (oldest, next int64, err error) {
	err = r.bounded(ctx, topic, func(ctx context.Context) error {
		return r.await(ctx, func() (err error) {
			if oldest, err = r.client.GetOffset(topic, partition, sarama.OffsetOldest); err != nil {
				return err
			}
			next, err = r.client.GetOffset(topic, partition, sarama.OffsetNewest)
			return err
		})
	})
	if err != nil {
		return 0, 0, fmt.Errorf("offsets of %s partition %d: %w", topic, partition, err)
	}
	return oldest, next, nil
}

// Partitions is the number of partitions of a topic.
func (r *Reader) Partitions(ctx context.Context, topic string) (int32, error) {
	var n int
	err := r.bounded(ctx, topic, func(ctx context.Context) error {
		return r.await(ctx, func() error {
			ids, err := r.client.Partitions(topic)
			n = len(ids)
			return err
		})
	})
	if err != nil {
		return 0, fmt.Errorf("partitions of %s: %w", topic, err)
	}
	return int32(n), nil
}

func (r *Reader) bounded(ctx context.Context, topic string, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeoutTotal)
	defer cancel()
	return r.retry(ctx, topic, func() error { return try(ctx) })
}

// retry repeats try while its error may pass, with the topic's leaders asked for again.
func (r *Reader) retry(ctx context.Context, topic string, try func() error) error {
	for {
		err := try()
		if err == nil || errors.Is(err, ErrGone) || errors.Is(err, sarama.ErrUnknownTopicOrPartition) ||
			errors.Is(err, sarama.ErrTopicAuthorizationFailed) || errors.Is(err, sarama.ErrClosedClient) || r.client.Closed() {
			return err
		}
		select {
		case <-ctx.Done():
			if errors.Is(err, ctx.Err()) {
				return err
			}
			return fmt.Errorf("%w (last error: %w)", ctx.Err(), err)
		case <-time.After(readRetryPause):
		}
		// Its error is the next attempt's.
		_ = r.await(ctx, func() error { return r.client.RefreshMetadata(topic) })
	}
}

// await runs a request, which cannot be stopped, and leaves it alone when ctx ends first; it ends by its own timeout.
func (r *Reader) await(ctx context.Context, request func() error) error {
	done := make(chan error, 1)
	r.pending.Go(func() { done <- request() })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fetched is the answer to one fetch.
type fetched struct {
	records []Record
	next    int64 // the offset to go on from; the one asked for if nothing came
	end     int64 // what lies at or above it cannot be read yet
}

func (r *Reader) fetch(ctx context.Context, topic string, partition int32, offset int64) (fetched, error) {
	type answer struct {
		f   fetched
		err error
	}
	done := make(chan answer, 1)
	r.pending.Go(func() {
		f, err := r.fetchNow(topic, partition, offset)
		done <- answer{f, err}
	})
	select {
	case a := <-done:
		return a.f, a.err
	case <-ctx.Done():
		return fetched{}, ctx.Err()
	}
}

func (r *Reader) fetchNow(topic string, partition int32, offset int64) (fetched, error) {
	broker, err := r.client.Leader(topic, partition)
	if err != nil {
		return fetched{}, err
	}
	req := &sarama.FetchRequest{
		Version: 11, MaxWaitTime: fetchWaitMillis, MinBytes: 1, MaxBytes: readerFetchBytes,
		Isolation: sarama.ReadCommitted, SessionEpoch: -1,
	}
	// A first batch above the limit comes whole all the same.
	req.AddBlock(topic, partition, offset, readerFetchBytes, -1)
	resp, err := broker.Fetch(req)
	if err != nil {
		// The connection is in an unknown state; the next attempt opens a new one.
		return fetched{}, errors.Join(err, ignoreNotConnected(broker.Close()))
	}
	block := resp.GetBlock(topic, partition)
	switch {
	case block == nil:
		return fetched{}, sarama.ErrIncompleteResponse
	case errors.Is(block.Err, sarama.ErrOffsetOutOfRange):
		return fetched{}, ErrGone
	case !errors.Is(block.Err, sarama.ErrNoError):
		return fetched{}, block.Err
	}
	return decode(topic, partition, offset, block)
}

func ignoreNotConnected(err error) error {
	if errors.Is(err, sarama.ErrNotConnected) {
		return nil
	}
	return err
}

func decode(topic string, partition int32, offset int64, block *sarama.FetchResponseBlock) (fetched, error) {
	f := fetched{next: offset, end: block.LastStableOffset}
	aborted := make(map[int64]bool)
	transactions := slices.SortedFunc(slices.Values(block.AbortedTransactions), func(a, b *sarama.AbortedTransaction) int {
		return cmp.Compare(a.FirstOffset, b.FirstOffset)
	})
	for _, set := range block.RecordsSet {
		batch := set.RecordBatch
		if batch == nil {
			return fetched{}, fmt.Errorf("topic %s holds records in the format from before Kafka 0.11", topic)
		}
		if batch.PartialTrailingRecord {
			break
		}
		f.next = max(f.next, batch.LastOffset()+1)
		for len(transactions) > 0 && transactions[0].FirstOffset <= batch.LastOffset() {
			aborted[transactions[0].ProducerID] = true
			transactions = transactions[1:]
		}
		if batch.Control {
			delete(aborted, batch.ProducerID) // a marker ends the producer's transaction
			continue
		}
		if batch.IsTransactional && aborted[batch.ProducerID] {
			continue
		}
		for _, rec := range batch.Records {
			if at := batch.FirstOffset + rec.OffsetDelta; at >= offset {
				f.records = append(f.records, recordOf(topic, partition, at, batch, rec))
			}
		}
	}
	return f, nil
}

func recordOf(topic string, partition int32, offset int64, batch *sarama.RecordBatch, rec *sarama.Record) Record {
	out := Record{Topic: topic, Partition: partition, Offset: offset, Key: rec.Key, Value: rec.Value}
	out.Timestamp = batch.FirstTimestamp.Add(rec.TimestampDelta)
	if batch.LogAppendTime {
		out.Timestamp = batch.MaxTimestamp
	}
	for _, h := range rec.Headers {
		out.Headers = append(out.Headers, Header{Key: h.Key, Value: h.Value})
	}
	return out
}
