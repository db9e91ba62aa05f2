package engine_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/stage/stagetest"
)

func TestCounter(t *testing.T) {
	c := Counter{Every: 3}
	run := stagetest.New(t,
		stagetest.Input(visits, c.Handle),
		stagetest.Output(milestones),
		stagetest.Table(pageRows, c.Rules.Merge),
	).Run(
		stagetest.Message(visits, "/index.html", Visit{ID: "monday"}),
		stagetest.Message(visits, "/index.html", Visit{ID: "tuesday"}),
		stagetest.Message(visits, "/index.html", Visit{ID: "tuesday"}), // its producer was not sure
		stagetest.Message(visits, "/index.html", Visit{ID: "wednesday"}),
	)
	if got := stagetest.Sent(run, milestones); len(got) != 1 || got[0].Visits != 3 {
		t.Errorf("milestones: %v", got)
	}
}

// The code that the tutorial shows is the code that is compiled and run here.
func TestTheTutorialShowsThisCode(t *testing.T) {
	page, err := os.ReadFile("../docs/framework.md")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, file := range []string{"example_test.go", "tutorial_test.go"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(b)
	}
	blocks := 0
	for i, part := range strings.Split(string(page), "```") {
		block, isGo := strings.CutPrefix(part, "go\n")
		if i%2 == 0 || !isGo {
			continue
		}
		blocks++
		for _, piece := range strings.Split(block, "\n\n") { // what stands between may be left out
			if piece = strings.Trim(piece, "\n"); piece != "" && !strings.Contains(code.String(), piece+"\n") {
				t.Errorf("this piece of the tutorial is not in the code:\n%s", piece)
			}
		}
	}
	if blocks < 4 {
		t.Error(fmt.Sprint("the tutorial has ", blocks, " blocks of Go"))
	}
}
