package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
)

// member joins a group by hand, as a process does that is known by its instance id.
type member struct {
	t              *testing.T
	addr, instance string
	id             string // "" where it is not known any more
	rebalance      time.Duration
}

// join waits for at most patience; a process that gives up closes its connection and joins again without a member id.
func (m member) join(patience time.Duration) (*kmsg.JoinGroupResponse, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(m.addr))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.InstanceID, req.ProtocolType = "g", kmsg.StringPtr(m.instance), "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 6000, int32(m.rebalance.Milliseconds())
	req.MemberID = m.id
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name, p.Metadata = "range", []byte(m.instance)
	req.Protocols = append(req.Protocols, p)
	for {
		resp, err := req.RequestWith(ctx, client)
		if err != nil {
			return nil, err
		}
		if resp.ErrorCode != kerr.MemberIDRequired.Code {
			return resp, kerr.ErrorForCode(resp.ErrorCode)
		}
		req.MemberID = resp.MemberID
	}
}

// sync asks for the assignment and does not wait for the answer.
func (m member) sync(of *kmsg.JoinGroupResponse) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(m.addr))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Second/2)
	defer cancel()
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = "g", of.MemberID, kmsg.StringPtr(m.instance), of.Generation
	if _, err = req.RequestWith(ctx, client); errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// A member dies while it waits for its assignment and comes back. The broker loses count of who has joined then: it goes
// on only when nobody has joined for the rebalance timeout, and members that give up waiting and join again, in turn,
// would keep it from that for ever. The client's timeouts must leave it the time. (Here all times are a tenth.)
func TestGroupFormsAfterADeathInSync(t *testing.T) {
	b := kafkatest.StartBroker(t)
	cfg, err := b.Config().Sarama()
	if err != nil {
		t.Fatal(err)
	}
	rebalance, patience := kafka.RebalanceTimeout/10, cfg.Net.ReadTimeout/10
	leader := member{t: t, addr: b.Addrs()[0], instance: "first", rebalance: rebalance}
	follower := member{t: t, addr: b.Addrs()[0], instance: "second", rebalance: rebalance}
	led, err := leader.join(kafkatest.Timeout)
	if err != nil {
		t.Fatal(err)
	}
	var followed *kmsg.JoinGroupResponse
	var joining sync.WaitGroup
	joining.Go(func() { followed, err = follower.join(kafkatest.Timeout) })
	if _, waitErr := b.Cluster().WaitGroupInfo(kafkatest.Context(t), "g", func(g *kfake.GroupInfo) bool { return len(g.Members) == 2 }); waitErr != nil {
		t.Fatal(waitErr)
	}
	leader.id = led.MemberID
	if led, leadErr := leader.join(kafkatest.Timeout); leadErr != nil || led.LeaderID != led.MemberID {
		t.Fatalf("%+v: %v", led, leadErr)
	}
	joining.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if err := follower.sync(followed); err != nil { // the leader says nothing, and both come back as others
		t.Fatal(err)
	}
	leader.id = ""
	// From now on each joins again as often as it takes, the second one a third of the patience behind.
	end := time.Now().Add(6 * patience)
	tries := make([]int, 2)
	for i, m := range []member{follower, leader} {
		joining.Go(func() {
			<-time.After(time.Duration(i) * patience / 3)
			for time.Now().Before(end) {
				tries[i]++
				if _, err := m.join(patience); err == nil {
					return
				}
			}
			t.Errorf("%s has not joined after %d tries", m.instance, tries[i])
		})
	}
	joining.Wait()
	t.Logf("tries: %v", tries)
}

// heartbeat tells the broker that the member is there, and returns what the broker says.
func (m member) heartbeat(generation int32) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(m.addr))
	if err != nil {
		return err
	}
	defer client.Close()
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = "g", m.id, kmsg.StringPtr(m.instance), generation
	resp, err := req.RequestWith(m.t.Context(), client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.ErrorCode)
}

// Processes die while they wait for their turn to join, and never come back under their instance ids: their data folders
// are gone with them. They are given partitions, since the group counts them in; a session later they must be out again.
func TestMembersThatDieWhileTheyJoinAreMissed(t *testing.T) {
	t.Parallel()
	b := kafkatest.StartBroker(t)
	first := member{t: t, addr: b.Addrs()[0], instance: "first", rebalance: kafka.RebalanceTimeout}
	joined, err := first.join(kafkatest.Timeout)
	if err != nil {
		t.Fatal(err)
	}
	first.id = joined.MemberID
	const dead = 6 // of each the broker starts the session or forgets to, by chance
	var dying sync.WaitGroup
	for i := range dead {
		dying.Go(func() {
			m := member{t: t, addr: b.Addrs()[0], instance: fmt.Sprint("dead-", i), rebalance: kafka.RebalanceTimeout}
			if _, err := m.join(time.Second / 2); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("it does not wait for the first one: %v", err)
			}
		})
	}
	dying.Wait()
	if joined, err = first.join(kafkatest.Timeout); err != nil || len(joined.Members) != 1+dead {
		t.Fatalf("%+v: %v", joined, err)
	}
	left := 1 + dead
	for end := time.Now().Add(3 * kafka.SessionTimeout); left > 1 && time.Now().Before(end); {
		if err := first.sync(joined); err != nil && !errors.Is(err, kerr.RebalanceInProgress) {
			t.Fatal(err)
		}
		for err = nil; err == nil && time.Now().Before(end); err = first.heartbeat(joined.Generation) {
			<-time.After(kafka.HeartbeatInterval / 4)
		}
		if err != nil && !errors.Is(err, kerr.RebalanceInProgress) {
			t.Fatal(err)
		}
		if joined, err = first.join(kafkatest.Timeout); err != nil {
			t.Fatal(err)
		}
		left = len(joined.Members)
	}
	if left != 1 {
		t.Errorf("%d of %d members that are dead still have their partitions after %s", left-1, dead, 3*kafka.SessionTimeout)
	}
}
