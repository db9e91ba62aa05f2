package kafka_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/IBM/sarama"
	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/kafka"
)

// group plays a consumer group: pods with instance ids, whose members get new ids when they restart.
type group struct {
	pods       map[string]*pod
	topics     map[string][]int32
	partitions int32
	generation int32
	members    int
	memories   map[string]kafka.ClaimMemory // of the pods that keep their data folder
}

type pod struct {
	strategy sarama.BalanceStrategy
	member   string
	owned    []int32
}

func newGroup(partitions int32) *group {
	g := &group{pods: make(map[string]*pod), topics: make(map[string][]int32), partitions: partitions}
	for p := range partitions {
		g.topics["a"] = append(g.topics["a"], p)
		g.topics["b"] = append(g.topics["b"], partitions-1-p)
	}
	return g
}

// start is a new process of a pod: it remembers what the pod's memory has, nothing if it has none.
func (g *group) start(instance string) {
	g.members++
	g.pods[instance] = &pod{strategy: kafka.StickyCopartition(instance, g.memories[instance]), member: fmt.Sprintf("c-%08x", uint32(g.members)*2654435761)}
}

// rebalance lets any member lead and returns who owns each partition.
func (g *group) rebalance(t *rapid.T) map[int32]string {
	g.generation++
	metas := make(map[string]sarama.ConsumerGroupMemberMetadata)
	for _, p := range g.pods {
		data, err := p.strategy.(sarama.SubscriptionUserDataBalanceStrategy).SubscriptionUserData([]string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		metas[p.member] = sarama.ConsumerGroupMemberMetadata{Topics: []string{"a", "b"}, UserData: data}
	}
	leader := rapid.SampledFrom(slices.Sorted(maps.Keys(g.pods))).Draw(t, "leader")
	plan, err := g.pods[leader].strategy.Plan(metas, g.topics)
	if err != nil {
		t.Fatal(err)
	}
	owners := make(map[int32]string)
	for instance, p := range g.pods {
		a, b := plan[p.member]["a"], plan[p.member]["b"]
		if !slices.Equal(a, b) {
			t.Fatalf("%s got %v of one topic and %v of the other", instance, a, b)
		}
		for _, n := range a {
			if other, ok := owners[n]; ok {
				t.Fatalf("partition %d has two owners, %s and %s", n, instance, other)
			}
			owners[n] = instance
		}
		p.owned = a
		p.strategy.(sarama.OnAssignmentBalanceStrategy).OnAssignment(&sarama.ConsumerGroupMemberAssignment{Topics: plan[p.member]}, g.generation)
	}
	if len(owners) != int(g.partitions) {
		t.Fatalf("%d of %d partitions have an owner", len(owners), g.partitions)
	}
	least, most := int(g.partitions), 0
	for _, p := range g.pods {
		least, most = min(least, len(p.owned)), max(most, len(p.owned))
	}
	if most-least > 1 {
		t.Fatalf("shares from %d to %d", least, most)
	}
	return owners
}

// moved counts the partitions that have another owner than before.
func moved(before, after map[int32]string) int {
	n := 0
	for p, owner := range before {
		if after[p] != owner {
			n++
		}
	}
	return n
}

func TestBalanceMovesAsLittleAsPossible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGroup(rapid.Int32Range(1, 24).Draw(t, "partitions"))
		for i := range rapid.IntRange(1, 6).Draw(t, "pods") {
			g.start(fmt.Sprint("pod-", i))
		}
		before := g.rebalance(t)
		if got := g.rebalance(t); moved(before, got) != 0 {
			t.Fatalf("a rebalance without a cause moved %d partitions", moved(before, got))
		}
		next := len(g.pods)
		for range rapid.IntRange(1, 10).Draw(t, "events") {
			instance := rapid.SampledFrom(slices.Sorted(maps.Keys(g.pods))).Draw(t, "pod")
			event := rapid.SampledFrom([]string{"restart", "join", "leave"}).Draw(t, "event")
			allowed := 0
			switch event {
			case "restart": // with another member id, and without memory
				if len(g.pods) == 1 {
					continue // nobody remembers, and nobody else could have the partitions
				}
				if len(g.pods) > int(g.partitions) {
					// Some pods have nothing, and nobody knows which of those without a claim was the one that restarted.
					allowed = len(g.pods[instance].owned)
				}
				g.start(instance)
			case "join":
				instance = fmt.Sprint("pod-", next)
				next++
				g.start(instance)
			case "leave":
				if len(g.pods) == 1 {
					continue
				}
				allowed = len(g.pods[instance].owned)
				delete(g.pods, instance)
			}
			after := g.rebalance(t)
			if event == "join" {
				allowed = len(g.pods[instance].owned)
			}
			if n := moved(before, after); n > allowed {
				t.Fatalf("%s of %s moved %d partitions, %d would do: %v, then %v", event, instance, n, allowed, before, after)
			}
			before = after
		}
	})
}

// away takes a pod out of the group; what comes back later still remembers what it had.
func (g *group) away(instance string) *pod {
	p := g.pods[instance]
	delete(g.pods, instance)
	p.member += "-again"
	return p
}

// A pod that was away for a while gets back what it had: it still has most of those tables.
func TestBalanceGivesBackWhatAPodHadBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGroup(12)
		for i := range 3 {
			g.start(fmt.Sprint("pod-", i))
		}
		before := g.rebalance(t)
		p := g.away("pod-1")
		g.rebalance(t)
		g.pods["pod-1"] = p
		if after := g.rebalance(t); moved(before, after) != 0 {
			t.Fatalf("before %v, after %v", before, after)
		}
	})
}

// It does not get it back at the cost of those who have taken over since: their claim is the later one.
func TestBalanceKeepsTheLaterClaim(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGroup(12)
		for i := range 3 {
			g.start(fmt.Sprint("pod-", i))
		}
		g.rebalance(t)
		p := g.away("pod-1")
		g.start("pod-3") // takes all that pod-1 had
		without := g.rebalance(t)
		g.pods["pod-1"] = p
		if after := g.rebalance(t); moved(without, after) != 3 {
			t.Fatalf("%d partitions moved, but the share of the pod that came back is 3: %v, then %v", moved(without, after), without, after)
		}
	})
}

func TestBalanceRefusesTopicsThatDiffer(t *testing.T) {
	s := kafka.StickyCopartition("a", nil)
	members := map[string]sarama.ConsumerGroupMemberMetadata{"m": {Topics: []string{"a", "b"}}}
	if _, err := s.Plan(members, map[string][]int32{"a": {0, 1}, "b": {0}}); err == nil {
		t.Fatal("topics with different partitions were accepted")
	}
}

// While a group is being upgraded its members may ask for different topics, and some may be no pods of ours.
func TestBalanceBearsMembersThatDiffer(t *testing.T) {
	s := kafka.StickyCopartition("a", nil)
	members := map[string]sarama.ConsumerGroupMemberMetadata{
		"m1": {Topics: []string{"a", "b"}, UserData: []byte(`{"instance":"pod-1","owned":[0,1,99,-5]}`)},
		"m2": {Topics: []string{"a"}, UserData: []byte("something else")},
		"m3": {Topics: []string{"a", "missing"}},
	}
	plan, err := s.Plan(members, map[string][]int32{"a": {0, 1, 2}, "b": {0, 1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	var got []int32
	for _, m := range plan {
		got = append(got, m["a"]...)
	}
	slices.Sort(got)
	if !slices.Equal(got, []int32{0, 1, 2}) {
		t.Fatalf("plan %v", plan)
	}
}

func FuzzBalance(f *testing.F) {
	f.Add([]byte(`{"instance":"a","owned":[0,1],"generation":3}`), []byte(""))
	f.Add([]byte(`{"instance":"a","owned":[0,0,0]}`), []byte(`{"instance":"a","owned":[0]}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		members := map[string]sarama.ConsumerGroupMemberMetadata{
			"m1": {Topics: []string{"t"}, UserData: a}, "m2": {Topics: []string{"t"}, UserData: b},
		}
		plan, err := kafka.StickyCopartition("x", nil).Plan(members, map[string][]int32{"t": {0, 1, 2}})
		if err != nil {
			t.Fatal(err)
		}
		if all := slices.Sorted(slices.Values(append(slices.Clone(plan["m1"]["t"]), plan["m2"]["t"]...))); !slices.Equal(all, []int32{0, 1, 2}) {
			t.Fatalf("plan %v", plan)
		}
	})
}

// memory is a data folder that outlives its pod's process.
type memory struct{ claim []byte }

func (m *memory) Load() []byte      { return m.claim }
func (m *memory) Save(claim []byte) { m.claim = slices.Clone(claim) }

// A pod that was away for longer than its session gets back what it had, if it still has its data folder: the others were
// minding it, and keep their own.
func TestPodComesBackAfterItsSession(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods := []string{"a", "b", "c", "d"}[:rapid.IntRange(2, 4).Draw(t, "pods")]
		each := rapid.Int32Range(1, 8).Draw(t, "partitions of each")
		g := newGroup(each * int32(len(pods))) // of shares that differ by one, the larger may have become another's
		g.memories = map[string]kafka.ClaimMemory{}
		for _, p := range rapid.Permutation(pods).Draw(t, "order") {
			g.memories[p] = &memory{}
			g.start(p)
			g.rebalance(t)
		}
		before := g.rebalance(t)
		away := rapid.SampledFrom(pods).Draw(t, "away")
		delete(g.pods, away)
		for range rapid.IntRange(1, 3).Draw(t, "rebalances") {
			g.rebalance(t)
		}
		g.start(away)
		if after := g.rebalance(t); !maps.Equal(after, before) {
			t.Errorf("%s comes back, and %v has become %v", away, before, after)
		}
	})
}

// What a memory has may be damaged, or another pod's: then nothing is claimed.
func TestForeignMemoriesAreNoClaims(t *testing.T) {
	for _, claim := range []string{"", "damaged", `{"instance":"b","generation":7,"owned":[1,2]}`, `{"owned":[1]}`} {
		s := kafka.StickyCopartition("a", &memory{[]byte(claim)})
		data, err := s.(sarama.SubscriptionUserDataBalanceStrategy).SubscriptionUserData(nil)
		if err != nil || string(data) != `{"instance":"a"}` {
			t.Errorf("with %q it says %s (%v)", claim, data, err)
		}
	}
}
