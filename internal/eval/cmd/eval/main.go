// Command eval prints the tables of docs/quality.md: make eval.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/waymarkhq/waymark/internal/eval"
	"github.com/waymarkhq/waymark/rag/split"
	"github.com/waymarkhq/waymark/sinks"
)

// variants of the splitter that are compared; the first is the default.
var variants = []struct {
	name    string
	options split.Options
}{
	{"`structure`", split.Options{Mode: split.ModeStructure, Tokens: split.DefaultTokens, Overlap: split.DefaultOverlap}},
	{"`sentence`", split.Options{Mode: split.ModeSentence, Tokens: split.DefaultTokens, Overlap: split.DefaultOverlap}},
	{"`tokens`", split.Options{Mode: split.ModeTokens, Tokens: split.DefaultTokens, Overlap: split.DefaultOverlap}},
	{"`page`", split.Options{Mode: split.ModePage, Tokens: split.DefaultTokens, Overlap: split.DefaultOverlap}},
	{"`structure`, no overlap", split.Options{Tokens: split.DefaultTokens}},
	{"`structure`, 100 tokens", split.Options{Tokens: 100, Overlap: 15}},
	{"`structure`, 400 tokens", split.Options{Tokens: 400, Overlap: 60}},
	{"`structure`, 100 tokens, parents of 400", split.Options{Tokens: 100, Overlap: 15, Parent: 400}},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := tables(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func tables(ctx context.Context) error {
	set, err := eval.Load(ctx, ".")
	if err != nil {
		return err
	}
	results := make([]eval.Result, len(variants))
	for i, v := range variants {
		dir, err := os.MkdirTemp("", "waymark-eval")
		if err != nil {
			return err
		}
		results[i], err = eval.Run(ctx, set, v.options, dir)
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
	}
	fmt.Printf("%d documents, %d questions\n", len(set.Documents), len(set.Questions))
	for _, lang := range []string{"en", "ru", "ru-en", "en-ru"} {
		fmt.Printf("\n%s: %d questions; MRR@10, recall@1 / @5 / @10\n\n| splitter | chunks | vector | text | hybrid |\n|---|---|---|---|---|\n",
			lang, results[0].Scores[lang][sinks.ModeText].Questions)
		for i, v := range variants {
			fmt.Printf("| %s | %d |", v.name, results[i].Chunks)
			for _, mode := range []sinks.Mode{sinks.ModeVector, sinks.ModeText, sinks.ModeHybrid} {
				s := results[i].Scores[lang][mode]
				fmt.Printf(" %.2f, %.2f / %.2f / %.2f |", s.MRR, s.Recall[1], s.Recall[5], s.Recall[10])
			}
			fmt.Println()
		}
	}
	return nil
}
