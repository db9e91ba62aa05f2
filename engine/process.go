package engine

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/IBM/sarama"

	"github.com/waymarkhq/waymark/internal/mutant"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/stage"
)

// errAbandoned: the partition was lost while the message was being worked on.
var errAbandoned = errors.New("the partition was lost")

// ReasonPanic is the reason of a failure whose handler panicked.
const ReasonPanic = "panic"

// process works on one message in the partition's own goroutine: handler, outputs, row.
func (p *partition) process(f *flight, in *input, raw rawMessage) {
	start := p.r.env.Clock.Mono()
	key := string(raw.record.Key)
	var res result
	var row encodedRow
	err := p.try(func() error {
		if err := p.r.suspects.convicted(raw.record); err != nil {
			return err
		}
		old, base, err := p.row(key)
		if err != nil {
			return err
		}
		leave := p.r.suspects.enter(in.index, []stage.Record{raw.record})
		err = safely(func() error {
			res, err = in.handle(p.ctx, raw, old)
			return err
		})
		leave()
		if err != nil {
			return err
		}
		err = safely(func() error {
			row, err = p.checkResult(key, res)
			return err
		})
		row.base = base
		return err
	}, func(fl Failure) error {
		fl.Record = raw.record
		old, base, err := p.row(key)
		if err != nil {
			return err
		}
		res, row, err = p.failureResult(fl, old)
		row.base = base
		return err
	})
	p.r.env.Metrics.observe(p.r.env.Stage, in.topic, err, p.r.env.Clock.Mono()-start)
	if err != nil {
		p.giveBack(f, err)
		return
	}
	p.apply(f, res, row)
}

func (p *partition) row(key string) (row any, base basis, err error) {
	if p.rows == nil {
		return nil, basis{}, nil
	}
	return p.rows.load(key)
}

// try runs work until it succeeds or fails for good: an outage is waited out and counts nothing, a transient error is
// tried again in place, an error of the message, or one that stays, goes to failed. What is returned is errAbandoned, or a
// damaged local store, which no waiting mends.
func (p *partition) try(work func() error, failed func(Failure) error) error {
	tries, held := 0, ""
	defer func() { p.r.outages.over(held) }() // also where the partition was lost: it is somebody else's then
	for waits := 1; ; waits++ {
		if !p.session.alive() {
			return errAbandoned
		}
		err := work()
		if err == nil || errors.Is(err, kafka.ErrStoreDamaged) {
			return err
		}
		class := p.classify(err)
		if class != stage.ClassOutage {
			tries++
			if class == stage.ClassMessage || tries >= p.r.env.Retry.Tries {
				err = failed(Failure{Group: p.r.group.name, Err: err, Class: class, Attempts: tries})
				if err == nil {
					return nil
				}
				class, tries = stage.ClassOutage, 0 // what follows from a failure must not be lost
			}
		}
		if class == stage.ClassOutage {
			held = outageOf(err)
		}
		if !p.pause(err, class, waits) {
			return errAbandoned
		}
	}
}

// pause waits before the next try; false if the partition was lost meanwhile.
func (p *partition) pause(err error, class stage.Class, n int) bool {
	wait := p.r.env.Retry.wait(n, p.r.env.Jitter())
	var e *stage.Error
	if errors.As(err, &e) {
		wait = max(wait, e.After)
	}
	p.r.env.Metrics.retries.WithLabelValues(p.r.env.Stage, class.String()).Inc()
	if class == stage.ClassOutage {
		p.r.outages.begin(outageOf(err), err)
	} else {
		p.log.Warn("a message is tried again", "error", err, "wait", wait.String())
	}
	return p.sleep(p.ctx, wait)
}

// classify is the class of an error; an outage counts as one only while the canary fails too (contract rule 9).
func (p *partition) classify(err error) stage.Class {
	class := stage.ClassOf(err)
	if mutant.Active == mutant.OutageIsAttempt && class == stage.ClassOutage {
		return stage.ClassTransient
	}
	if class != stage.ClassOutage || p.r.group.canary == nil || errors.Is(err, stage.ErrNewerFormat) {
		return class
	}
	if p.r.group.canary(p.work, stage.ReasonOf(err, "")) == nil {
		return stage.ClassTransient
	}
	return class
}

// failureResult asks the group what follows from a failure, and checks that it can be sent.
func (p *partition) failureResult(f Failure, row any) (res result, enc encodedRow, err error) {
	p.log.Debug("a message failed", "topic", f.Record.Topic, "offset", f.Record.Offset, "class", f.Class.String(), "error", f.Err)
	if p.r.group.failure == nil {
		return res, enc, stage.Outage("failure_handler", 0, fmt.Errorf("nothing says what follows from a failure: %w", f.Err))
	}
	err = safely(func() error {
		res, err = p.r.group.failure(p.ctx, f, row)
		return err
	})
	if err != nil {
		return res, enc, err
	}
	enc, err = p.checkResult(string(f.Record.Key), res)
	return res, enc, err
}

// checkResult refuses what could not be sent before anything is: one record that is too large ends a processor for ever
// (contract rule 16).
func (p *partition) checkResult(key string, r result) (encodedRow, error) {
	if err := joinErrors(p.checkOutputs(r.outputs), p.checkOutputs(r.said)); err != nil {
		return encodedRow{}, err
	}
	if r.more != nil {
		if err := r.more(p.ctx, func(out stage.Output) error { return p.checkOutput(out) }); err != nil {
			return encodedRow{}, err
		}
	}
	if r.row == nil {
		return encodedRow{}, nil
	}
	return p.checkRow(key, r.row)
}

// checkRow encodes a row and refuses one that its topic would not take.
func (p *partition) checkRow(key string, row any) (encodedRow, error) {
	if p.rows == nil {
		return encodedRow{}, stage.Reject("no_table", "the group has no table for the row of %q", key)
	}
	out, err := p.rows.output(key, row)
	if err != nil {
		return encodedRow{}, err
	}
	return encodedRow{row: row, out: out}, p.r.sender.Check(out)
}

func (p *partition) checkOutputs(outs []stage.Output) error {
	for _, out := range outs {
		if err := p.checkOutput(out); err != nil {
			return err
		}
	}
	return nil
}

func (p *partition) checkOutput(out stage.Output) error {
	if out.Err != nil {
		return stage.Reject("not_encodable", "a record for %s: %w", out.Topic, out.Err)
	}
	return p.r.sender.Check(out)
}

// safely calls user code; a panic is an error of the message (contract rule 5).
func safely(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = stage.Reject(ReasonPanic, "the stage panicked: %v\n%s", r, debug.Stack())
		}
	}()
	return f()
}

func joinErrors(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return errors.Join(a, b)
}

func toRecord(m *sarama.ConsumerMessage) stage.Record {
	r := stage.Record{Topic: m.Topic, Partition: m.Partition, Offset: m.Offset, Timestamp: m.Timestamp, Key: m.Key, Value: m.Value}
	if len(m.Headers) > 0 {
		r.Headers = make([]stage.Header, len(m.Headers))
		for i, h := range m.Headers {
			r.Headers[i] = stage.Header{Key: h.Key, Value: h.Value}
		}
	}
	return r
}
