package model

// Kafka, reduced to what the contract depends on: partitioned logs, produces that are acknowledged later (or never, or
// after their sender died), compaction, and consumer groups with generations and committed offsets.

// Topics. A table is a topic too.
const (
	TDocs = iota
	TReplays
	TChunks
	TVectors
	TProgress
	TEvents
	TLetters
	TCommands
	TabChunker
	TabIndexer
	TabTracker
	TabLetters
	nTopics
)

var topicName = [nTopics]string{"documents", "replays", "chunks", "vectors", "progress", "events", "dead-letters", "commands",
	"chunker-table", "indexer-table", "tracker-table", "deadletters-table"}

// P is the number of partitions of every topic.
const P = 2

func part(key string) int {
	h := 0
	for i := 0; i < len(key); i++ {
		h = h*31 + int(key[i])
	}
	return (h & 0x7fffffff) % P
}

// VG names one attempt at the truth of a document: the version (offset+1 of its record) and the generation (replays by
// command). It is ordered.
type VG struct{ V, G int }

func (a VG) less(b VG) bool { return a.V < b.V || a.V == b.V && a.G < b.G }

// Rec is a record of any topic; each kind uses some of the fields.
type Rec struct {
	Kind    string // put del | chunk | manifest verdict vector receipt removed | event | letter | replay due discard | row
	Key     string
	Doc     string
	Msg     string // message id
	Content string
	VG      VG
	Att     int // automatic attempt
	N, Idx  int // number of chunks; index of this chunk
	Status  string
	Stage   string // of a verdict: who gives it, if not the chunker
	Origin  int    // documents: offset+1 in the partition that it was forwarded from
	Base    int    // unchanged: the served version that it was compared with
	Raw     *Rec   // letter, replay: the document record
	Due     DueRemoval
	Row     Row // table record
}

// Log is one partition.
type Log struct {
	recs []*Rec // nil: compacted away
	born []int  // step of the append
}

func (l *Log) append(r *Rec, now int) int {
	l.recs = append(l.recs, r)
	l.born = append(l.born, now)
	return len(l.recs) - 1
}

// compact removes records that have a later one with the same key, if they are older than lag, each with probability 2/3.
func (l *Log) compact(now, lag int, all bool, chance func() bool) int {
	last, n := map[string]int{}, 0
	for i, r := range l.recs {
		if r != nil {
			last[r.Key] = i
		}
	}
	for i, r := range l.recs {
		if r != nil && last[r.Key] != i && (all || l.born[i]+lag < now && chance()) {
			l.recs[i] = nil
			n++
		}
	}
	return n
}

// send is a record on its way. One request is in flight per pod and partition, so a queue keeps its order.
type send struct {
	topic, part int
	rec         *Rec
	task        *Task
}

// Group is a consumer group; partition p of all its inputs has one owner.
type Group struct {
	name      string
	inputs    []int
	table     int // -1: none
	gen       int
	owner     [P]*Pod
	committed [nTopics][P]int // -1: none
	handle    func(*Sim, *Task)
}

// Gate commits in order: it knows what was delivered from one topic-partition and marks the contiguous prefix of what is done.
type Gate struct {
	delivered []int
	done      map[int]bool
	mark      int // next offset to commit
}

func (g *Gate) advance(unordered bool) {
	if unordered { // mutant: sarama keeps the highest mark
		for o, d := range g.done {
			if d && o+1 > g.mark {
				g.mark = o + 1
			}
		}
		return
	}
	for len(g.delivered) > 0 && g.done[g.delivered[0]] {
		g.mark = g.delivered[0] + 1
		g.delivered = g.delivered[1:]
	}
}
