package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waymarkhq/waymark/kafka"
)

// Rows 1 and 5: three pods are restarted one after another while documents change, first with SIGTERM and then with SIGKILL,
// each on its own data folder. A pod that is back within its session has its partitions at once, and nobody else gets one. On a
// machine so busy that a pod is away for longer, its partitions may go away and come back.
func TestFaultRollingRestartOfPods(t *testing.T) {
	if _, ok := given(); ok {
		t.Skip("NOT RUN: topics on given brokers have fewer partitions than there are pods here")
	}
	w := newWorld(t, worldOptions{seed: 105})
	w.start("api", "api")
	pods := []*process{w.start("pod-0", workers...), w.start("pod-1", workers...), w.start("pod-2", workers...)}
	w.api.waitReady()
	for _, p := range pods {
		p.waitReady()
	}
	w.watch()
	o := w.observeOwners(pods)
	stop := w.changing(15, 60*time.Millisecond)

	restarts, long := 0, 0
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for _, p := range pods {
			accepted := w.submitted()
			if !o.restart(p, sig) {
				long++
			}
			restarts++
			if w.submitted() == accepted {
				t.Errorf("no document changed while %s was restarted", p.name)
			}
		}
	}
	stop()
	o.stop()
	w.over()
	if want := 2 * len(pods); restarts != want || o.rejoined != want*len(o.groups) {
		t.Errorf("%d restarts of %d, and the groups have seen %d new members", restarts, want, o.rejoined)
	}
	o.check(long)
	w.check()
}

// Row 1: a pod is away for longer than its session lasts, and another one has taken over all of its partitions. When it comes
// back, on its data folder, it gets the same ones again, whose tables it still has.
func TestFaultPodAwayForLongerThanItsSession(t *testing.T) {
	if _, ok := given(); ok {
		t.Skip("NOT RUN: topics on given brokers have fewer partitions than this takes")
	}
	w := newWorld(t, worldOptions{seed: 106, partitions: 4})
	w.start("api", "api")
	pods := []*process{w.start("pod-0", workers...), w.start("pod-1", workers...)}
	w.api.waitReady()
	for _, p := range pods {
		p.waitReady()
	}
	w.watch()
	o := w.observeOwners(pods)
	before := o.now()
	stop := w.changing(15, 60*time.Millisecond)
	pods[1].kill(syscall.SIGKILL)
	eventually(t, "the other pod to take over", func() error {
		for c, pod := range o.now() {
			if pod != pods[0].name {
				return fmt.Errorf("partition %d of %s is still that of %s", c.partition, c.group, pod)
			}
		}
		return nil
	})
	pods[1].launch()
	eventually(t, "the pod to get its partitions back", func() error {
		if now := o.now(); !maps.Equal(now, before) {
			return fmt.Errorf("%v", now)
		}
		return nil
	})
	stop()
	w.over()
	w.check()
	if !maps.Equal(o.now(), before) && !busy() { // on a busy machine another session may have ended
		t.Errorf("in the end the partitions are %v, they were %v", o.now(), before)
	}
	o.stop()
}

// now are the owners of all partitions.
func (o *owners) now() map[claimed]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.current)
}

func (w *world) submitted() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.submissions)
}

// claimed is a partition of a group; the topics of a group are copartitioned.
type claimed struct {
	group     string
	partition int32
}

// owners looks all the time at which pod has which partition, as the coordinator of the groups says.
type owners struct {
	w      *world
	client *kgo.Client
	groups []string
	pods   map[string]string // by group instance id

	stop     func()
	rejoined int // members that have taken the places of those before them, of all groups

	mu      sync.Mutex
	looks   int
	current map[claimed]string           // the last known owner
	members map[string]map[string]string // by group and pod: the member id, while the group is stable
	moves   []move
	begun   map[claimed]string // the owners when the restart that goes on began
	during  string             // that restart
}

type move struct {
	claimed
	during, from, to string
	elsewhere        bool // to is another pod than the one that had it when the restart began
}

// observeOwners waits until the pods are in all groups, and each has partitions, and observes them from then on.
func (w *world) observeOwners(pods []*process) *owners {
	w.t.Helper()
	g := kafka.NewTopics(w.prefix).Groups
	o := &owners{w: w, client: logClient(w.t, w.broker), groups: []string{g.Chunker, g.Embedder, g.Indexer, g.Tracker, g.DeadLetters},
		pods: map[string]string{}, current: map[claimed]string{}, members: map[string]map[string]string{}}
	for _, p := range pods {
		b, err := os.ReadFile(filepath.Join(w.dir, p.name, "instance-id"))
		if err != nil {
			w.t.Fatal(err)
		}
		for _, group := range o.groups {
			o.pods[strings.TrimSpace(string(b))+"-"+group] = p.name
		}
	}
	eventually(w.t, "the pods to be in all groups", func() error { return errors.Join(o.look(w.t.Context()), o.together()) })
	o.moves = nil // they have joined one after another
	w.t.Logf("before: %s", o)
	has := map[string]int{}
	for c, pod := range o.current {
		has[c.group+" "+pod]++
	}
	if len(o.current) != len(o.groups)*int(w.partitions) || len(has) != len(o.groups)*len(pods) {
		w.t.Fatalf("a partition has no pod, or a pod no partition: %s", o)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	var looking sync.WaitGroup
	looking.Go(func() {
		for ctx.Err() == nil {
			_ = o.look(ctx) // the broker answers late, or a group is not stable: the next look tells
			pause(30 * time.Millisecond)
		}
	})
	o.stop = sync.OnceFunc(func() {
		cancel()
		looking.Wait()
	})
	w.t.Cleanup(o.stop)
	return o
}

// look asks once. A group that is not stable has no assignment: what it had before counts until it has the next one.
func (o *owners) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = o.groups
	answer, err := req.RequestWith(ctx, o.client)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.looks++
	for _, g := range answer.Groups {
		err = errors.Join(err, o.note(g))
	}
	return err
}

func (o *owners) note(g kmsg.DescribeGroupsResponseGroup) error {
	delete(o.members, g.Group)
	if err := kerr.ErrorForCode(g.ErrorCode); err != nil {
		return err
	}
	if g.State != "Stable" {
		return fmt.Errorf("%s is %s", g.Group, g.State)
	}
	members := map[string]string{}
	for _, m := range g.Members {
		var a kmsg.ConsumerMemberAssignment
		if m.InstanceID == nil || o.pods[*m.InstanceID] == "" {
			return fmt.Errorf("%s has a member that is no pod: %s", g.Group, m.MemberID)
		}
		if err := a.ReadFrom(m.MemberAssignment); err != nil {
			return fmt.Errorf("the assignment of %s: %w", m.MemberID, err)
		}
		pod := o.pods[*m.InstanceID]
		members[pod] = m.MemberID
		for _, t := range a.Topics {
			for _, p := range t.Partitions {
				o.own(claimed{g.Group, p}, pod)
			}
		}
	}
	o.members[g.Group] = members
	return nil
}

func (o *owners) own(c claimed, pod string) {
	if from := o.current[c]; from != "" && from != pod {
		o.moves = append(o.moves, move{c, o.during, from, pod, pod != o.begun[c]})
	}
	o.current[c] = pod
}

// together is nil when all groups are stable and have all pods. Call it with the lock held.
func (o *owners) together() error {
	for _, g := range o.groups {
		if len(o.members[g]) != len(o.pods)/len(o.groups) {
			return fmt.Errorf("%s has these members: %v", g, o.members[g])
		}
	}
	return nil
}

// replaced counts the groups in which a pod is another member than before.
func (o *owners) replaced(pod string, before map[string]map[string]string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, g := range o.groups {
		if now := o.members[g][pod]; now != "" && now != before[g][pod] {
			n++
		}
	}
	return n
}

// restart ends a pod, starts it again, and waits until it is back in all groups. It reports whether all sessions lasted: the
// pod was not away for too long, and no other one, on a busy machine, was put out of a group.
func (o *owners) restart(p *process, sig syscall.Signal) bool {
	t := o.w.t
	t.Helper()
	var before map[string]map[string]string
	eventually(t, "all pods to be in all groups", func() error {
		o.mu.Lock()
		defer o.mu.Unlock()
		before, o.begun, o.during = maps.Clone(o.members), maps.Clone(o.current), fmt.Sprintf("the restart of %s with %s", p.name, sig)
		return o.together()
	})
	began := time.Now()
	p.kill(sig)
	if code := p.code(); sig == syscall.SIGTERM && code != 0 {
		t.Errorf("%s ended with %d", p.name, code)
	}
	ended := time.Since(began)
	p.launch()
	eventually(t, p.name+" to be back in all groups", func() error {
		if n := o.replaced(p.name, before); n != len(o.groups) {
			return fmt.Errorf("it is a new member of %d groups", n)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.together()
	})
	away := time.Since(began)
	p.waitReady()
	o.rejoined += o.replaced(p.name, before)

	lasted := away < kafka.SessionTimeout
	for _, other := range slices.Sorted(maps.Keys(before[o.groups[0]])) {
		if n := o.replaced(other, before); other != p.name && n > 0 {
			lasted = false
			t.Logf("%s was put out of %d groups during %s", other, n, o.during)
		}
	}
	t.Logf("%s: ended after %.1f s, back in all groups after %.1f s", o.during, ended.Seconds(), away.Seconds())
	if !lasted && !busy() {
		t.Errorf("%s took longer than a session of %s, or cost another pod its own, on a machine that is not busy", o.during, kafka.SessionTimeout)
	}
	return lasted
}

// check allows no move at all where all sessions lasted. Otherwise a restart that took longer may take each partition to
// another pod once, and back.
func (o *owners) check(long int) {
	t := o.w.t
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	elsewhere := map[claimed]int{}
	for _, m := range o.moves {
		if m.elsewhere {
			elsewhere[m.claimed]++
		}
		if long == 0 || elsewhere[m.claimed] > long {
			t.Errorf("partition %d of %s went from %s to %s during %s", m.partition, m.group, m.from, m.to, m.during)
		}
	}
	t.Logf("%d looks, %d moves, %d restarts longer than a session; in the end: %s", o.looks, len(o.moves), long, o)
}

func (o *owners) String() string {
	var all []string
	for c, pod := range o.current {
		all = append(all, fmt.Sprintf("%s/%d: %s", c.group, c.partition, pod))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
