// Package model is Waymark's delivery contract as a program that runs: a deterministic simulator of its five groups, of
// Kafka and of the vector store, with faults at every step boundary. See README.md.
package model

import (
	"fmt"
	"iter"
	"math/rand/v2"
)

// Bounds, in steps. Whatever is late (a paused pod, a dead pod's sends, an unanswered store write, a view) is at most
// this late; a second removal waits for longer than all of them together.
const (
	lateness     = 150
	removalDelay = 5 * lateness
	retryDelay   = 40
	tableLag     = 3 * lateness  // min.compaction.lag.ms of tables
	docsLag      = 40 * lateness // of documents
	horizon      = 1500          // steps with faults; then the drain
	maxSteps     = 60000
)

// wrongPartition in Idx marks a record from a producer with another partitioner.
const wrongPartition = 99

// Cfg of one run.
type Cfg struct {
	Seed     uint64
	Mutant   Mutant
	Unfix    []Hole // opened again
	Drop     []Rule // left out
	Events   []Ev   // nil: made from the seed
	Trace    bool
	NoAssert bool // see assert
	Keep     int  // message ids remembered per document; 0: all
}

// Ev is one entry of the schedule: a workload operation or a fault.
type Ev struct {
	Step int
	Kind string
	A, B int
	C    string
}

func (e Ev) String() string { return fmt.Sprintf("@%d %s %d %d %s", e.Step, e.Kind, e.A, e.B, e.C) }

// Sim is one run.
type Sim struct {
	cfg       Cfg
	rng       *rand.Rand
	now       int
	topics    [nTopics][P]*Log
	groups    []*Group
	pods      []*Pod
	late      []lateSend
	store     Store
	views     map[string]*View
	storeDown int
	fixed     map[string]bool

	embedFaults int
	transients  map[string]int
	clients     []*client
	truly       map[[3]int]bool // (topic, partition, offset) completed, by the model's own book
	shadow      []shadowRec     // documents as appended
	flipped     map[string][]flip
	weights     [16]int
	draining    bool
	seen        map[string]int
	violation   string
	trace       []string
	verified    [nTopics][P]int
}
type shadowRec struct {
	part, off int
	rec       *Rec
}
type lateSend struct {
	q        []*send
	deadline int
	who      string
}

// client submits one record until it is acknowledged.
type client struct {
	rec     *Rec
	sent    int
	lastTry int
	acked   bool
}

// Pod is one process of one role; the API's pods have no group.
type Pod struct {
	name     string
	group    *Group
	up       bool
	upAt     int
	paused   int // until
	pcs      []*PC
	queues   [nTopics][P][]*send
	disk     [P]*Disk
	upserts  map[string]int
	cache    map[string]bool
	leftover []*Task // tasks that outlived their partition
	killAt   int
	expelled bool // its session expired while it was paused
	delayed  int  // until: its sends do not land
	stalled  int  // until: those to progress do not, and others do
}

func (p *Pod) String() string { return p.name }

// Disk is the local state of one partition; it survives a crash unless it is lost.
type Disk struct {
	rows map[string]Row
	pos  int
}

// PC is a partition as held by a pod.
type PC struct {
	pod    *Pod
	part   int
	gen    int
	next   [nTopics]int
	gates  [nTopics]*Gate
	disk   *Disk
	busy   *Task
	tasks  []*Task
	batch  []*item
	timers map[string]bool
	stale  int // deadline to notice that the partition is lost; 0: not lost
}

// View is a goka view: it follows a table late, merging.
type View struct {
	table int
	rows  map[string]Row
	pos   [P]int
}

// Task is one record (or batch, or timer) being worked on, as a coroutine.
type Task struct {
	s          *Sim
	pc         *PC
	rec        *Rec
	topic, off int
	items      []*item
	pending    int // sends not acknowledged
	cond       func() bool
	yield      func(struct{}) bool
	next       func() (struct{}, bool)
	stop       func()
	finished   bool
	onDrop     func()
}

type stopped struct{}

func (t *Task) step() {
	if !t.yield(struct{}{}) {
		panic(stopped{})
	}
}
func (t *Task) wait(cond func() bool) {
	if !cond() {
		t.cond = cond
		t.step()
		t.cond = nil
	}
}
func (t *Task) acked()   { t.wait(func() bool { return t.pending == 0 }) }
func (t *Task) release() { t.pc.busy = nil }
func (t *Task) session(s *Sim) bool {
	return s.drop(RuleSession) || t.pc.stale == 0 && t.pc.gen == t.pc.pod.group.gen
}
func (t *Task) row(key string) Row { return t.pc.disk.rows[key] }

// setRow is goka's SetValue: LevelDB first, then the table record is sent.
func (t *Task) setRow(key string, row Row) {
	t.step()
	t.pc.disk.rows[key] = row
	t.step()
	t.s.send(t.pc.pod, t.pc.pod.group.table, &Rec{Kind: "row", Key: key, Row: row}, t)
}

func (s *Sim) start(pc *PC, rec *Rec, topic, off int, items []*item, f func(*Sim, *Task)) *Task {
	t := &Task{s: s, pc: pc, rec: rec, topic: topic, off: off, items: items}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		defer func() {
			if r := recover(); r != nil {
				if _, ok := r.(stopped); !ok {
					panic(r)
				}
			}
		}()
		f(s, t)
		t.finished = true
	})
	pc.tasks = append(pc.tasks, t)
	return t
}

func (s *Sim) run(t *Task) {
	_, alive := t.next()
	if alive {
		return
	}
	t.drop()
	if t.finished {
		t.pc.finish(s, t)
	}
	if t.pc.busy == t {
		t.pc.busy = nil
	}
}
func (t *Task) drop() {
	if t.onDrop != nil {
		t.onDrop()
		t.onDrop = nil
	}
	for i, x := range t.pc.tasks {
		if x == t {
			t.pc.tasks = append(t.pc.tasks[:i:i], t.pc.tasks[i+1:]...)
		}
	}
	for i, x := range t.pc.pod.leftover {
		if x == t {
			t.pc.pod.leftover = append(t.pc.pod.leftover[:i:i], t.pc.pod.leftover[i+1:]...)
		}
	}
}

// finish: the message is done. The gate may mark it; the model's own book says whether it really is.
func (pc *PC) finish(s *Sim, t *Task) {
	if t.topic < 0 {
		return
	}
	if t.finished && t.pending == 0 {
		s.truly[[3]int{t.topic, pc.part, t.off}] = true
	}
	pc.gates[t.topic].done[t.off] = true
}

// New makes a run.
func New(cfg Cfg) *Sim {
	s := &Sim{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 7)), fixed: map[string]bool{}, transients: map[string]int{}, truly: map[[3]int]bool{},
		seen: map[string]int{}, flipped: map[string][]flip{}, views: map[string]*View{}}
	s.store.objects = map[objID]string{}
	for t := range s.topics {
		for p := range s.topics[t] {
			s.topics[t][p] = &Log{}
		}
	}
	group := func(name string, table int, h func(*Sim, *Task), pods int, inputs ...int) {
		g := &Group{name: name, inputs: inputs, table: table, handle: h}
		for t := range g.committed {
			g.committed[t] = [P]int{-1, -1}
		}
		s.groups = append(s.groups, g)
		for i := range pods {
			s.pods = append(s.pods, &Pod{name: fmt.Sprintf("%s%d", name, i), group: g, up: true, upserts: map[string]int{}, cache: map[string]bool{}})
		}
	}
	group("chunker", TabChunker, handleChunker, 2, TDocs, TReplays)
	group("embedder", -1, handleEmbedder, 2, TChunks)
	group("indexer", TabIndexer, handleIndexer, 3, TVectors, TProgress)
	group("tracker", TabTracker, handleTracker, 2, TEvents)
	group("deadletters", TabLetters, handleLetters, 2, TLetters, TCommands)
	for i := range 2 {
		s.pods = append(s.pods, &Pod{name: fmt.Sprintf("api%d", i), up: true})
	}
	s.views["join"] = &View{table: TabIndexer, rows: map[string]Row{}}
	s.views["api-docs"] = &View{table: TabIndexer, rows: map[string]Row{}}
	s.views["api-msgs"] = &View{table: TabTracker, rows: map[string]Row{}}
	s.views["api-letters"] = &View{table: TabLetters, rows: map[string]Row{}}
	for i := range s.weights { // swarm: every run favours other actions
		s.weights[i] = []int{1, 1, 4, 16}[s.rng.IntN(4)]
	}
	if cfg.Events == nil {
		s.cfg.Events = makeSchedule(cfg)
	}
	for _, g := range s.groups {
		s.rebalance(g)
	}
	return s
}

func (s *Sim) count(what string) { s.seen[what]++ }
func (s *Sim) tracef(f string, a ...any) {
	if s.cfg.Trace {
		s.trace = append(s.trace, fmt.Sprintf("%5d ", s.now)+fmt.Sprintf(f, a...))
	}
}

// assert checks the model's own reasoning; with NoAssert the run goes on, to see which promise breaks.
func (s *Sim) assert(f string, a ...any) {
	if !s.cfg.NoAssert {
		s.fail("model: "+f, a...)
	}
}

func (s *Sim) fail(f string, a ...any) {
	if s.violation == "" {
		s.violation = fmt.Sprintf(f, a...)
		s.tracef("VIOLATION %s", s.violation)
	}
}
