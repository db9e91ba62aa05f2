package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/IBM/sarama"
)

// Operation that a user may be allowed on a topic or a group, by the name that Kafka's tools use.
type Operation string

// Operations that processes need.
const (
	OperationRead            Operation = "Read"
	OperationWrite           Operation = "Write"
	OperationDescribe        Operation = "Describe"
	OperationDescribeConfigs Operation = "DescribeConfigs"
)

var operationCodes = map[Operation]sarama.AclOperation{
	OperationRead: sarama.AclOperationRead, OperationWrite: sarama.AclOperationWrite, OperationDescribe: sarama.AclOperationDescribe,
	OperationDescribeConfigs: sarama.AclOperationDescribeConfigs,
}

// Access is a right: an operation on a topic or on a group.
type Access struct {
	Operation Operation
	Topic     string // "" for a group
	Group     string
}

func (a Access) String() string {
	if a.Group != "" {
		return fmt.Sprintf("%s on group %s", a.Operation, a.Group)
	}
	return fmt.Sprintf("%s on topic %s", a.Operation, a.Topic)
}

// AccessError lists rights that this process needs and does not have.
type AccessError struct{ Missing []Access }

func (e *AccessError) Error() string {
	lines := make([]string, len(e.Missing))
	for i, a := range e.Missing {
		lines[i] = a.String()
	}
	return "Kafka does not allow this user what it needs; it is not authorized for: " + strings.Join(lines, ", ")
}

// CheckAccess asks the cluster whether this process has the rights; nothing is read or written for it. Brokers that do not
// tell, the embedded one among them, allow everything as far as it knows. The error is an *AccessError that lists all that is
// missing.
func CheckAccess(ctx context.Context, cfg Config, needed []Access) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	conf, err := cfg.Sarama()
	if err != nil {
		return err
	}
	client, err := sarama.NewClient(cfg.Brokers, conf)
	if err != nil {
		return fmt.Errorf("connect to kafka at %s: %w", strings.Join(cfg.Brokers, ","), err)
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	topics, groups := map[string]int32{}, map[string]int32{}
	for _, a := range needed {
		if a.Group != "" {
			groups[a.Group] = 0
		} else {
			topics[a.Topic] = 0
		}
	}
	if err := topicRights(client, topics); err != nil {
		return err
	}
	if err := groupRights(client, groups); err != nil {
		return err
	}
	missing := &AccessError{}
	for _, a := range needed {
		rights := topics[a.Topic]
		if a.Group != "" {
			rights = groups[a.Group]
		}
		if rights != untold && rights&(1<<operationCodes[a.Operation]) == 0 && !slices.Contains(missing.Missing, a) {
			missing.Missing = append(missing.Missing, a)
		}
	}
	if len(missing.Missing) > 0 {
		return missing
	}
	return nil
}

// untold is what brokers send that do not say which operations are allowed.
const untold = math.MinInt32

// topicRights fills in the operations that are allowed on each topic, a bit for each.
func topicRights(client sarama.Client, topics map[string]int32) error {
	if len(topics) == 0 {
		return nil // an empty list would ask for all topics of the cluster
	}
	broker, err := client.Controller()
	if err != nil {
		return fmt.Errorf("ask for the rights on topics: %w", err)
	}
	request := sarama.NewMetadataRequest(client.Config().Version, slices.Sorted(maps.Keys(topics)))
	request.IncludeTopicAuthorizedOperations = true
	answer, err := broker.GetMetadata(request)
	if err != nil {
		return fmt.Errorf("ask for the rights on topics: %w", err)
	}
	for _, t := range answer.Topics {
		switch {
		case errors.Is(t.Err, sarama.ErrTopicAuthorizationFailed):
			topics[t.Name] = 0
		case !errors.Is(t.Err, sarama.ErrNoError) && !errors.Is(t.Err, sarama.ErrLeaderNotAvailable):
			return fmt.Errorf("ask for the rights on topic %s: %w", t.Name, t.Err)
		case answer.Version < 8:
			topics[t.Name] = untold
		default:
			topics[t.Name] = t.TopicAuthorizedOperations
		}
	}
	return nil
}

// groupRights does the same for groups, each of which has a broker of its own to ask.
func groupRights(client sarama.Client, groups map[string]int32) error {
	for group := range groups {
		broker, err := client.Coordinator(group)
		if errors.Is(err, sarama.ErrGroupAuthorizationFailed) {
			continue
		}
		if err != nil {
			return fmt.Errorf("ask for the rights on group %s: %w", group, err)
		}
		answer, err := broker.DescribeGroups(&sarama.DescribeGroupsRequest{Version: 3, Groups: []string{group}, IncludeAuthorizedOperations: true})
		if err != nil {
			return fmt.Errorf("ask for the rights on group %s: %w", group, err)
		}
		for _, g := range answer.Groups {
			switch {
			case errors.Is(g.Err, sarama.ErrGroupAuthorizationFailed):
			case !errors.Is(g.Err, sarama.ErrNoError), g.AuthorizedOperations == 0:
				groups[group] = untold // one that nobody has joined yet is not known to all brokers
			default:
				groups[group] = g.AuthorizedOperations
			}
		}
	}
	return nil
}
