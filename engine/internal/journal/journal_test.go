package journal

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("JOURNAL_CHILD"); path != "" {
		j, _, err := Open(path)
		if err != nil {
			panic(err)
		}
		j.Begin(Entry{Input: 1, Partition: 2, Offset: 3})()
		j.Begin(Entry{Input: 0, Partition: 7, Offset: 1 << 40})
		j.Begin(Entry{Input: 1, Partition: 3, Offset: 9, Alone: true})
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Kill()
		select {}
	}
	os.Exit(m.Run())
}

func TestEntriesSurviveTheDeathOfTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "running")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "JOURNAL_CHILD="+path)
	if err := child.Run(); err == nil {
		t.Fatal("the child was not killed")
	}
	j, left, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []Entry{{Input: 1, Partition: 3, Offset: 9, Alone: true}, {Input: 0, Partition: 7, Offset: 1 << 40}}
	if !reflect.DeepEqual(left, want) && !reflect.DeepEqual(left, []Entry{want[1], want[0]}) {
		t.Errorf("left %+v", left)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, left, _ := Open(path); len(left) != 0 {
		t.Errorf("a second start finds %+v", left)
	}
}

func TestEndTakesTheNoteBackAndFreesTheSlot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "running")
	j, _, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var ends []func()
		for i := range Slots + 10 { // more than there is room for
			ends = append(ends, j.Begin(Entry{Offset: int64(i)}))
		}
		for _, end := range ends {
			end()
		}
	}
	last := j.Begin(Entry{Offset: 5})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	last() // harmless
	j.Begin(Entry{})()
	_, left, err := Open(path)
	if err != nil || len(left) != 1 || left[0].Offset != 5 {
		t.Errorf("left %+v (%v)", left, err)
	}
}
