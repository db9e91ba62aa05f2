package weaviate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/weaviate/weaviate/entities/models"

	"github.com/waymarkhq/waymark/sinks"
)

var _ sinks.Forgetful = (*Store)(nil)

// healthTimeout bounds one look at the servers. A server that has died refuses at once; one that is only slow is not
// waited for.
const healthTimeout = 3 * time.Second

// nodes are the names of the servers that have been seen healthy.
type nodes struct {
	mu   sync.Mutex
	seen map[string]bool
}

// Interrupted implements sinks.Forgetful: a server that is killed and starts again is away or not healthy for seconds,
// which is seen in the status of the nodes. Where that may not be asked for, readiness is.
func (s *Store) Interrupted(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	status, err := s.client.Cluster().NodesStatusGetter().Do(ctx)
	if client := clientError(err); client != nil && client.StatusCode >= 400 && client.StatusCode < 500 {
		return s.notReady(ctx)
	}
	if err != nil {
		return s.unlessSlow(ctx, err)
	}
	return s.nodes.judge(status.Nodes)
}

func (s *Store) notReady(ctx context.Context) error {
	ready, err := s.client.Misc().ReadyChecker().Do(ctx)
	if err != nil {
		return s.unlessSlow(ctx, err)
	}
	if !ready {
		return errors.New("the server is not ready")
	}
	return nil
}

// unlessSlow is nil for an answer that did not come in time on a connection that stands.
func (s *Store) unlessSlow(ctx context.Context, err error) error {
	err = unwrap(err, 0)
	var op *net.OpError
	if dialing := errors.As(err, &op) && op.Op == "dial"; ctx.Err() != nil && !dialing {
		return nil
	}
	return fmt.Errorf("asking the servers how they are: %w", err)
}

// judge finds nodes that are not healthy, or are not there any more.
func (n *nodes) judge(now []*models.NodeStatus) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seen == nil {
		n.seen = map[string]bool{}
	}
	there := map[string]bool{}
	var errs []error
	for _, node := range now {
		there[node.Name] = true
		if node.Status == nil || *node.Status != models.NodeStatusStatusHEALTHY && *node.Status != models.NodeStatusStatusTIMEOUT {
			errs = append(errs, fmt.Errorf("node %s is not healthy", node.Name))
			continue
		}
		n.seen[node.Name] = true
	}
	for name := range n.seen {
		if !there[name] {
			errs = append(errs, fmt.Errorf("node %s has left", name))
			delete(n.seen, name) // told once
		}
	}
	return errors.Join(errs...)
}
