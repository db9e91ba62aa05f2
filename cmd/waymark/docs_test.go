package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/cmd/waymark/internal/console"
)

// Every command of the runbook exists, with the flags that it is shown with.
func TestCommandsOfTheRunbook(t *testing.T) {
	b, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	parts := strings.Split(string(b), "`")
	for _, line := range append(strings.Split(string(b), "\n"), parts...) {
		args, ours := strings.CutPrefix(line, "waymark ")
		if !ours || strings.Contains(args, "\n") {
			continue
		}
		found++
		var out bytes.Buffer
		env := &environment{console: console.New(console.Stream{Writer: &out}, console.Stream{Writer: &out}), getenv: func(string) string { return "" }}
		parser, err := newParser(newCLI(), env)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(strings.Fields(args)); err != nil {
			t.Errorf("waymark %s: %v", args, err)
		}
	}
	if found < 8 {
		t.Errorf("only %d commands were found", found)
	}
}
