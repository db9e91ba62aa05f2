package kafka

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/IBM/sarama"
)

// copartitionName is part of the protocol: members with different names of it cannot be in one group.
const copartitionName = "sticky-copartition"

// maxClaims bounds what a member may claim; the rest of its message is ignored.
const maxClaims = MaxPartitions

// StickyCopartition is a balance strategy for sarama that gives each member the same partition numbers of all topics, as
// goka needs it, and leaves partitions where they are. Members are told apart by the instance id of their pod, which
// survives a restart, and not by Kafka's member id, which does not:
//
//   - a pod that restarts gets its partitions back,
//   - when a pod joins, the others give up only what it gets; when one leaves, only its partitions move,
//   - shares differ by one partition at most.
//
// Each member says which partitions it has had last; the leader decides from that alone, so it may change at any time.
// Make one for each consumer group of a pod: it remembers the group's last assignment, in memory also beyond its process, so
// that a pod which was away for longer than its session gets back what others have taken over. A nil memory keeps nothing.
func StickyCopartition(instanceID string, memory ClaimMemory) sarama.BalanceStrategy {
	s := &stickyCopartition{instance: instanceID, memory: memory}
	if memory == nil {
		return s
	}
	if c, err := decodeClaim(memory.Load()); err == nil && c.Instance == instanceID { // else it begins without claims
		s.owned, s.generation = c.Owned, c.Generation
	}
	return s
}

// ClaimMemory keeps what a pod claims in a consumer group. A claim that is lost or old costs moves of partitions, never more.
type ClaimMemory interface {
	// Load returns what was saved last, nil if there is nothing.
	Load() []byte
	// Save is called with each assignment, and must not take long: the group waits.
	Save(claim []byte)
}

type stickyCopartition struct {
	instance string
	memory   ClaimMemory // nil: none

	mu         sync.Mutex
	owned      []int32
	generation int32
}

// claim is what a member says about itself when it joins.
type claim struct {
	Instance   string  `json:"instance"`
	Generation int32   `json:"generation,omitempty"`
	Owned      []int32 `json:"owned,omitempty"`
}

var (
	_ sarama.SubscriptionUserDataBalanceStrategy = (*stickyCopartition)(nil)
	_ sarama.OnAssignmentBalanceStrategy         = (*stickyCopartition)(nil)
)

func (s *stickyCopartition) Name() string { return copartitionName }

// SubscriptionUserData is what this member claims.
func (s *stickyCopartition) SubscriptionUserData([]string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claim()
}

// claim is what this member says of itself; the caller holds mu.
func (s *stickyCopartition) claim() ([]byte, error) {
	return json.Marshal(claim{Instance: s.instance, Generation: s.generation, Owned: s.owned})
}

// OnAssignment keeps what this member got.
func (s *stickyCopartition) OnAssignment(a *sarama.ConsumerGroupMemberAssignment, generation int32) {
	var owned []int32
	for _, partitions := range a.Topics {
		owned = append(owned, partitions...)
	}
	slices.Sort(owned)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owned, s.generation = slices.Compact(owned), generation
	if s.memory == nil {
		return
	}
	if b, err := s.claim(); err == nil { // numbers and a string: it has no error
		s.memory.Save(b)
	}
}

func (s *stickyCopartition) AssignmentData(string, map[string][]int32, int32) ([]byte, error) {
	return nil, nil
}

// Plan decides for the whole group.
func (s *stickyCopartition) Plan(members map[string]sarama.ConsumerGroupMemberMetadata, topics map[string][]int32) (sarama.BalanceStrategyPlan, error) {
	partitions, err := copartitioned(topics)
	if err != nil {
		return nil, err
	}
	shares := share(candidates(members), partitions)
	plan := make(sarama.BalanceStrategyPlan, len(members))
	for id, mine := range shares {
		for _, topic := range members[id].Topics {
			if _, ok := topics[topic]; ok { // a topic may be missing while a group is being upgraded
				plan.Add(id, topic, mine...)
			}
		}
	}
	return plan, nil
}

func copartitioned(topics map[string][]int32) ([]int32, error) {
	var partitions []int32
	first := true
	for topic, ps := range topics {
		ps = slices.Sorted(slices.Values(ps))
		if !first && !slices.Equal(partitions, ps) {
			return nil, fmt.Errorf("topics of one group need the same partitions, but %s has %d and another one %d", topic, len(ps), len(partitions))
		}
		partitions, first = ps, false
	}
	return partitions, nil
}

// candidate is a member in the order in which shares are given out.
type candidate struct {
	member string
	claim
}

// candidates are the members by instance id. What a member claims was decoded from foreign bytes and may be anything.
func candidates(members map[string]sarama.ConsumerGroupMemberMetadata) []candidate {
	out := make([]candidate, 0, len(members))
	for id, meta := range members {
		c, err := decodeClaim(meta.UserData)
		if err != nil {
			c = claim{Instance: id}
		}
		out = append(out, candidate{id, c})
	}
	slices.SortFunc(out, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.member, b.member))
	})
	return out
}

func decodeClaim(b []byte) (claim, error) {
	var c claim
	if err := json.Unmarshal(b, &c); err != nil {
		return claim{}, err
	}
	if c.Instance == "" {
		return claim{}, errors.New("claim without an instance id")
	}
	if len(c.Owned) > maxClaims {
		c.Owned = c.Owned[:maxClaims]
	}
	return c, nil
}

// share gives every partition to one member, as evenly as possible, and moves as few as that allows.
func share(members []candidate, partitions []int32) map[string][]int32 {
	out := make(map[string][]int32, len(members))
	if len(members) == 0 {
		return out
	}
	claimants := claims(members, partitions)
	quota := quotas(members, claimants, len(partitions))
	// take gives p to the first of the members that has room.
	take := func(p int32, by []string) bool {
		for _, m := range by {
			if len(out[m]) < quota[m] {
				out[m] = append(out[m], p)
				return true
			}
		}
		return false
	}
	// Whoever had a partition last keeps it. Who has too many gives up first what another member has had before: that
	// one still has most of its table.
	kept := slices.Clone(partitions)
	slices.SortStableFunc(kept, func(a, b int32) int { return cmp.Compare(len(claimants[a]), len(claimants[b])) })
	var free, rest []int32
	for _, p := range kept {
		if c := claimants[p]; len(c) == 0 || !take(p, c[:1]) {
			free = append(free, p)
		}
	}
	for _, p := range free {
		if !take(p, claimants[p]) {
			rest = append(rest, p)
		}
	}
	slices.Sort(rest)
	for _, m := range members {
		n := quota[m.member] - len(out[m.member])
		out[m.member] = append(out[m.member], rest[:n]...)
		slices.Sort(out[m.member])
		rest = rest[n:]
	}
	return out
}

// claims says who has had each partition, the last one first: a member that was away still claims what others have taken
// over since.
func claims(members []candidate, partitions []int32) map[int32][]string {
	byGeneration := slices.Clone(members)
	slices.SortStableFunc(byGeneration, func(a, b candidate) int { return cmp.Compare(b.Generation, a.Generation) })
	out := make(map[int32][]string, len(partitions))
	for _, p := range partitions {
		out[p] = nil
	}
	for _, m := range byGeneration {
		for _, p := range m.Owned {
			if who, exists := out[p]; exists && !slices.Contains(who, m.member) {
				out[p] = append(who, m.member)
			}
		}
	}
	return out
}

// quotas are the sizes of the shares. Where they cannot be equal, the larger ones go to those who would lose a partition
// otherwise, and then to those who claim the fewest: a pod that has just been restarted claims none, and may have had one.
func quotas(members []candidate, claimants map[int32][]string, partitions int) map[string]int {
	has := make(map[string]int, len(members))
	for _, c := range claimants {
		if len(c) > 0 {
			has[c[0]]++
		}
	}
	least := partitions / len(members)
	order := slices.Clone(members)
	slices.SortStableFunc(order, func(a, b candidate) int {
		ha, hb := has[a.member], has[b.member]
		if ha > least || hb > least {
			return cmp.Compare(hb, ha)
		}
		return cmp.Compare(ha, hb)
	})
	out := make(map[string]int, len(members))
	for i, m := range order {
		out[m.member] = least
		if i < partitions%len(members) {
			out[m.member]++
		}
	}
	return out
}
