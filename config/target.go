package config

import "slices"

// Command is what a configuration is for: some values are required, or matter at all, only for some commands.
type Command string

// Commands that read the configuration.
const (
	CommandUp     Command = "up"
	CommandRun    Command = "run"
	CommandBroker Command = "broker"
	CommandTopics Command = "topics"
	// CommandClient calls the API; only api.listen matters to it.
	CommandClient Command = "client"
)

// Roles of `run`; `up` has all of them.
const (
	RoleAPI         = "api"
	RoleChunker     = "chunker"
	RoleEmbedder    = "embedder"
	RoleIndexer     = "indexer"
	RoleTracker     = "tracker"
	RoleDeadLetters = "deadletters"
)

// Roles lists the roles, in the order of the flow.
func Roles() []string {
	return []string{RoleAPI, RoleChunker, RoleEmbedder, RoleIndexer, RoleTracker, RoleDeadLetters}
}

// Target is the command that a configuration is loaded for.
type Target struct {
	Command Command
	// Roles of CommandRun.
	Roles []string
	// Insecure allows addresses other than loopback without API tokens.
	Insecure bool
}

func (t Target) has(roles ...string) bool {
	if t.Command == CommandUp {
		return true
	}
	return t.Command == CommandRun && slices.ContainsFunc(roles, func(r string) bool { return slices.Contains(t.Roles, r) })
}

func (t Target) api() bool      { return t.has(RoleAPI) }
func (t Target) store() bool    { return t.has(RoleAPI, RoleIndexer) }
func (t Target) embedder() bool { return t.has(RoleAPI, RoleEmbedder) }
func (t Target) kafka() bool    { return t.Command != CommandBroker && t.Command != CommandClient }

// embedded reports whether the topics will stand in the embedded broker.
func (t Target) embedded(c *Config) bool {
	return len(c.Kafka.Brokers) == 0 && (t.Command == CommandUp || t.Command == CommandBroker)
}
