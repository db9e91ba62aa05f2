package openai

import (
	"context"
	"errors"
	"fmt"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/embed"
)

// Embed asks the service, in as many calls as the batch size needs, one after the other.
//
// A batch that the service refuses (400, 413, 422) is halved until it is accepted or a single text is left. Before a
// single text is blamed, for a refusal or for a vector of a wrong length, the canary must pass: a service that refuses
// everything is an outage. Nothing depends on the words of an error.
func (c *Client) Embed(ctx context.Context, texts []string) ([]embed.Result, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	if c.Dimensions() == 0 {
		if err := c.Canary(ctx); err != nil {
			return nil, err
		}
	}
	b := batch{client: c, results: make([]embed.Result, len(texts))}
	for from := 0; from < len(texts); {
		to := min(from+c.batch.size(), len(texts))
		if err := b.embed(ctx, texts, from, to); err != nil {
			return b.results, err
		}
		from = to
	}
	return b.results, nil
}

// batch is one call of Embed at work.
type batch struct {
	client  *Client
	results []embed.Result
	proven  bool // the canary has passed during this call
}

// embed fills the results of texts[from:to].
func (b *batch) embed(ctx context.Context, texts []string, from, to int) error {
	vectors, err := b.client.call(ctx, texts[from:to])
	var no *refusal
	switch {
	case err == nil:
		b.client.batch.accepted(to - from)
		return b.judge(ctx, vectors, from)
	case !errors.As(err, &no):
		return err
	case to-from > 1:
		return b.halve(ctx, texts, from, to)
	}
	if err := b.prove(ctx); err != nil {
		return err
	}
	b.results[from].Err = &embed.Error{Class: rag.ClassMessage, Reason: rag.ReasonEmbedderRefused, Err: no}
	return nil
}

// halve embeds the two halves of a refused batch. Where both have no refused text, it was their number that the
// service refused: later batches are smaller.
func (b *batch) halve(ctx context.Context, texts []string, from, to int) error {
	middle := from + (to-from)/2
	for _, half := range [][2]int{{from, middle}, {middle, to}} {
		if err := b.embed(ctx, texts, half[0], half[1]); err != nil {
			return err
		}
	}
	for _, r := range b.results[from:to] {
		if r.Err != nil && embed.ClassOf(r.Err) == rag.ClassMessage {
			return nil
		}
	}
	b.client.batch.refused(to - from)
	return nil
}

// judge checks the vectors of the texts at from and after.
func (b *batch) judge(ctx context.Context, vectors [][]float32, from int) error {
	dims, allWrong := b.client.Dimensions(), true
	for i, v := range vectors {
		allWrong = allWrong && len(v) != dims
		r := &b.results[from+i]
		if r.Err = embed.Check(v, dims); r.Err == nil {
			r.Vector = v
		}
	}
	if !allWrong {
		return nil
	}
	// Not one text's fault, it seems: the model behind the name may have changed.
	if err := b.prove(ctx); err != nil {
		clear(b.results[from : from+len(vectors)])
		return err
	}
	return nil
}

// prove runs the canary, once during a call of Embed.
func (b *batch) prove(ctx context.Context) error {
	if b.proven {
		return nil
	}
	if err := b.client.Canary(ctx); err != nil {
		return fmt.Errorf("confirm by canary: %w", err)
	}
	b.proven = true
	return nil
}
