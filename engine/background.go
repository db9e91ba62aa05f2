package engine

import (
	"context"
	"reflect"

	"github.com/waymarkhq/waymark/stage"
)

// background is a group's work beside its messages; the type of the row is closed over.
type background struct {
	row reflect.Type
	run func(ctx context.Context, p *partition) error
}

// Background adds work that runs for each partition while this process owns it.
func Background[R any](work stage.Background[R]) Option {
	return func(g *Group) {
		g.background = &background{row: rowType[R](), run: func(ctx context.Context, p *partition) error {
			return work(ctx, stage.Owned[R]{
				Partition: p.id,
				Row:       func(key string) *R { return typed[R](p.rowOf(key)) },
				Valid:     p.session.alive,
				Delivered: p.delivered,
				Alone:     p.alone,
			})
		}}
	}
}

// rowOf reads a row for work off goka's goroutine; one that cannot be read counts as none.
func (p *partition) rowOf(key string) any {
	row, _, err := p.row(key)
	if err != nil {
		p.log.Error("a row cannot be read", "error", err)
		return nil
	}
	return row
}

func (p *partition) delivered(topic string) (next int64, known bool) {
	g := p.session.gate(claimKey{topic, p.id})
	if g == nil {
		return 0, false
	}
	_, _, mark, last := g.stats()
	return max(mark, last+1), true
}

func (p *partition) alone(act func(ctx context.Context)) {
	p.effects.Lock()
	defer p.effects.Unlock()
	act(p.work)
}

// runBackground runs the group's work beside its messages until the session ends; where it fails it begins anew.
func (p *partition) runBackground() {
	for try := 1; ; try++ {
		err := safely(func() error { return p.r.group.background.run(p.ctx, p) })
		if p.ctx.Err() != nil || err == nil {
			return
		}
		wait := p.r.env.Retry.wait(try, p.r.env.Jitter())
		p.log.Error("work in the background failed and begins anew", "error", err, "wait", wait.String())
		if !p.sleep(p.ctx, wait) {
			return
		}
	}
}
