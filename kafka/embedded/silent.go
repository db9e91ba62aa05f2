package embedded

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// silent puts members out of their groups that were never heard of. The library starts a member's session when it answers
// it. A process that dies while it waits to join, or for its assignment, may not be answered any more: it is counted in,
// given partitions, and never missed. One that comes back under its instance id takes its place; one whose data folder is
// lost, or whose machine is, leaves partitions that nobody reads.
type silent struct {
	cluster *kfake.Cluster
	client  *kgo.Client
	log     *slog.Logger
	cancel  context.CancelFunc
	looking sync.WaitGroup

	mu     sync.Mutex
	groups map[string]*heard
}

// heard is what members of a group have said since this process began.
type heard struct {
	session time.Duration        // the longest that any member has asked for
	beating map[string]struct{}  // members with a heartbeat: their sessions run
	silent  map[string]time.Time // since when others are in the group that has formed, and have said nothing
}

// lookEvery is how often silent members are looked for.
const lookEvery = time.Second

func watchSilent(c *kfake.Cluster, addr string, log *slog.Logger) (*silent, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return nil, err
	}
	s := &silent{cluster: c, client: client, log: log, groups: map[string]*heard{}}
	c.ControlKey(int16(kmsg.JoinGroup), overhear(s.joins))
	c.ControlKey(int16(kmsg.Heartbeat), overhear(s.beats))
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.looking.Go(func() { s.run(ctx) })
	return s, nil
}

func (s *silent) close() {
	s.cancel()
	s.looking.Wait()
	s.client.Close()
}

// overhear makes a control function that hears of a request and leaves it to the library.
func overhear(hear func(kmsg.Request)) func(kmsg.Request) (kmsg.Response, error, bool) {
	return func(r kmsg.Request) (kmsg.Response, error, bool) {
		hear(r)
		return nil, nil, false
	}
}

func (s *silent) joins(r kmsg.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if join, ok := r.(*kmsg.JoinGroupRequest); ok {
		g := s.groups[join.Group]
		if g == nil {
			g = &heard{beating: map[string]struct{}{}, silent: map[string]time.Time{}}
			s.groups[join.Group] = g
		}
		delete(g.silent, join.MemberID)
		g.session = max(g.session, time.Duration(join.SessionTimeoutMillis)*time.Millisecond)
	}
}

func (s *silent) beats(r kmsg.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if beat, ok := r.(*kmsg.HeartbeatRequest); ok {
		if g := s.groups[beat.Group]; g != nil {
			g.beating[beat.MemberID] = struct{}{}
		}
	}
}

func (s *silent) run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.mu.Lock()
		groups := make([]string, 0, len(s.groups))
		for g := range s.groups {
			groups = append(groups, g)
		}
		s.mu.Unlock()
		for _, g := range groups {
			if info := s.cluster.GroupInfo(g); info != nil && ctx.Err() == nil {
				s.putOut(ctx, g, s.overdue(info, time.Now()))
			}
		}
	}
}

// overdue returns the members that have said nothing for a session since their group formed. While it forms anew it waits
// for them in vain; who is new to it may wait in silence.
func (s *silent) overdue(info *kfake.GroupInfo, now time.Time) (members []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[info.Group]
	there := make(map[string]bool, len(info.Members))
	for _, m := range info.Members {
		there[m.MemberID] = true
		since, silent := g.silent[m.MemberID]
		switch _, beating := g.beating[m.MemberID]; {
		case beating:
			delete(g.silent, m.MemberID)
		case !silent && info.State == "Stable":
			g.silent[m.MemberID] = now
		case silent && now.Sub(since) > g.session:
			members = append(members, m.MemberID)
		}
	}
	maps.DeleteFunc(g.beating, func(id string, _ struct{}) bool { return !there[id] })
	maps.DeleteFunc(g.silent, func(id string, _ time.Time) bool { return !there[id] })
	return members
}

// putOut lets members leave, as if they had said so themselves.
func (s *silent) putOut(ctx context.Context, group string, members []string) {
	if len(members) == 0 {
		return
	}
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = group
	for _, id := range members {
		m := kmsg.NewLeaveGroupRequestMember()
		m.MemberID = id
		req.Members = append(req.Members, m)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := req.RequestWith(ctx, s.client); err != nil {
		s.log.Warn("members of a group that were never heard of could not be put out; it is tried again", "group", group, "error", err)
		return
	}
	s.log.Warn("members of a group were never heard of: their partitions go to the others", "group", group, "members", len(members))
}
