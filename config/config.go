// Package config is the configuration of the binary: one struct, its defaults, where its values come from, and one
// validation that names every problem at once, each with the line, variable or flag that it came from.
package config

import (
	"fmt"
	"time"
)

// Config is the whole configuration. Its keys (the tags) are API: in YAML as nested maps, as variables
// (WAYMARK_KAFKA_BROKERS), as flags (--kafka.brokers). Make one with Default or Load; the zero value is not valid.
type Config struct {
	DataDir   string    `key:"data_dir" form:"folder" help:"Folder of all local state; one process at a time."`
	Kafka     Kafka     `key:"kafka"`
	Broker    Broker    `key:"broker"`
	Store     Store     `key:"store"`
	Weaviate  Weaviate  `key:"weaviate"`
	Embedding Embedding `key:"embedding"`
	Splitting Splitting `key:"splitting"`
	Limits    Limits    `key:"limits"`
	Blobs     Blobs     `key:"blobs"`
	Parsers   []Parser  `key:"parsers" form:"yaml" help:"Programs that read documents: a list of {types, when, command or url, memory}; docs/parsers.md."`
	Delivery  Delivery  `key:"delivery"`
	API       API       `key:"api"`
	Monitor   Monitor   `key:"monitor"`

	origins map[string]Origin
}

// Kafka names the cluster and the shape of its topics. Without brokers, `up` starts the embedded broker.
type Kafka struct {
	Brokers     []string `key:"brokers" help:"Bootstrap brokers as host:port; none: 'up' starts the embedded broker."`
	TopicPrefix string   `key:"topic_prefix" help:"What the names of all topics and groups begin with."`
	Epoch       int      `key:"epoch" help:"Raise it by one after the documents topic was created anew or got more partitions."`
	Partitions  int      `key:"partitions" help:"Partitions of every topic that is created (12; embedded broker: 4)."`
	Replication int      `key:"replication" help:"Replicas of every topic that is created (3; embedded broker: 1)."`
	Standby     bool     `key:"standby" help:"Follow the tables of all partitions, not only one's own: taking over is faster, and costs disk and traffic."`
	TLS         TLS      `key:"tls"`
	SASL        SASL     `key:"sasl"`
}

// TLS of the connections to Kafka.
type TLS struct {
	Enabled    bool   `key:"enabled" help:"Speak TLS with the brokers."`
	CAFile     string `key:"ca_file" form:"file" help:"PEM file of the authorities to trust; none: those of the system."`
	CertFile   string `key:"cert_file" form:"file" help:"PEM file of the client certificate."`
	KeyFile    string `key:"key_file" form:"file" help:"PEM file of the client certificate's key."`
	ServerName string `key:"server_name" help:"Name that the brokers' certificates must have, where it is not the host's."`
}

// SASL is how a client proves to Kafka who it is.
type SASL struct {
	Mechanism    string   `key:"mechanism" help:"PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER; none: no login."`
	Username     string   `key:"username" help:"User to log in as."`
	Password     Secret   `key:"password" help:"Password; by variable only."`
	PasswordFile string   `key:"password_file" form:"file" help:"File with the password."`
	TokenFile    string   `key:"token_file" form:"file" help:"File with the token of OAUTHBEARER, read anew at every login."`
	TokenCommand []string `key:"token_command" help:"Command and arguments that write the token of OAUTHBEARER to standard output."`
}

// Broker is the embedded Kafka broker.
type Broker struct {
	Listen string `key:"listen" form:"host:port" help:"Address of the embedded broker; port 0 takes a free one once and keeps it in the data folder."`
}

// Store is where chunks and vectors are kept.
type Store struct {
	Kind string `key:"kind" help:"sqlite (embedded) or weaviate."`
	Path string `key:"path" form:"file" help:"The SQLite file; 'up' defaults to store.db in the data folder."`
}

// Weaviate is the server behind store.kind weaviate.
type Weaviate struct {
	URL        string `key:"url" form:"url" help:"Address of the REST interface."`
	GRPC       string `key:"grpc" form:"host:port" help:"host:port of the gRPC interface; none: REST only."`
	APIKey     Secret `key:"api_key" help:"API key; by variable only."`
	APIKeyFile string `key:"api_key_file" form:"file" help:"File with the API key."`
	// A token of OpenID Connect, instead of an API key.
	TokenFile    string      `key:"token_file" form:"file" help:"File with an OIDC token, read anew for every request."`
	TokenCommand []string    `key:"token_command" help:"Command and arguments that write an OIDC token to standard output."`
	TLS          WeaviateTLS `key:"tls"`
	Collection   string      `key:"collection" help:"Collection of the chunks."`
	Tenant       string      `key:"tenant" help:"Tenant of the collection, where it has tenants."`
	Replication  int         `key:"replication" help:"Replicas of the collection, when it is created; 0: what the server has as its default."`
	Consistency  string      `key:"consistency" help:"Replicas that must confirm: ONE, QUORUM or ALL."`
	Writers      int         `key:"writers" help:"Most batches that one process writes at the same time."`
}

// WeaviateTLS is for a server at an https URL, for REST and gRPC alike.
type WeaviateTLS struct {
	CAFile     string `key:"ca_file" form:"file" help:"PEM file of the authorities to trust; none: those of the system."`
	CertFile   string `key:"cert_file" form:"file" help:"PEM file of the client certificate."`
	KeyFile    string `key:"key_file" form:"file" help:"PEM file of the client certificate's key."`
	ServerName string `key:"server_name" help:"Name that the server's certificate must have, where it is not the host's."`
}

// Embedding is the model that turns chunks into vectors.
type Embedding struct {
	Kind       string `key:"kind" help:"builtin, or openai for any service with the OpenAI interface."`
	URL        string `key:"url" form:"url" help:"Address of the service (openai: https://api.openai.com/v1)."`
	Model      string `key:"model" help:"Name of the service's model."`
	APIKey     Secret `key:"api_key" help:"API key; by variable only."`
	APIKeyFile string `key:"api_key_file" form:"file" help:"File with the API key."`
	Batch      int    `key:"batch" help:"Most texts in one call to the service."`
}

// Splitting is how texts are cut into chunks.
type Splitting struct {
	Mode         string `key:"mode" help:"What chunks follow: structure, sentence, tokens or page."`
	Tokens       int    `key:"tokens" help:"Aimed size of a chunk, in tokens."`
	Overlap      int    `key:"overlap" help:"Tokens that a chunk repeats from the one before it."`
	ParentTokens int    `key:"parent_tokens" help:"Size of the parent that a search gives with each chunk, in tokens; 0: no parents."`
}

// Limits bound what one document may cost; one above them is dead, and can be replayed once the limit is raised.
type Limits struct {
	Chunks        int           `key:"chunks" help:"Most chunks of one document."`
	ParseTime     time.Duration `key:"parse_time" help:"Longest time to read and split one document, or 4 MiB of a large text."`
	DocumentBytes int           `key:"document_bytes" help:"Largest document, in bytes; above 8 MiB only where there is a blob store."`
}

// Blobs is where the content of large documents is kept. Without it everything travels in Kafka.
type Blobs struct {
	URL string `key:"url" form:"url" help:"Folder or bucket of documents above 256 KiB, as file:///srv/blobs or s3://bucket?region=…, the same for all roles ('up' with the embedded broker: blobs in the data folder; otherwise none)."`
}

// Delivery is what the pipeline promises and how patient it is.
type Delivery struct {
	Contract     string        `key:"contract" help:"at-least-once, the only one that the document pipeline keeps."`
	Attempts     int           `key:"attempts" help:"Runs of a failing document before it is dead."`
	Backoff      Backoff       `key:"backoff"`
	RemovalDelay time.Duration `key:"removal_delay" help:"How long replaced chunks stay in the store; longer than view_lag by what a search may take."`
	ViewLag      time.Duration `key:"view_lag" help:"How far search may lag behind before it answers 503."`
}

// Backoff is the wait between two runs of a failing document: doubled each time, from Initial up to Max.
type Backoff struct {
	Initial time.Duration `key:"initial" help:"Wait before the second run."`
	Max     time.Duration `key:"max" help:"Longest wait between two runs."`
}

// API is the HTTP interface.
type API struct {
	Listen string  `key:"listen" form:"host:port" help:"Address of the HTTP API; --listen for short."`
	Tokens []Token `key:"tokens" help:"Tokens as name:scopes:sha256, e.g. ci:ingest+read:9f86…; by file or variable only."`
}

// Monitor serves health and metrics of roles without the API.
type Monitor struct {
	Listen string `key:"listen" form:"host:port" help:"Address of healthz, readyz and metrics for roles without the API; none: off."`
}

// Default is the configuration that holds when nobody says anything. What depends on other values (partitions,
// replication, store.path, embedding.url) is settled by Load.
func Default() *Config {
	return &Config{
		DataDir:   "./waymark-data",
		Kafka:     Kafka{TopicPrefix: "waymark", Partitions: 12, Replication: 3},
		Broker:    Broker{Listen: "127.0.0.1:0"},
		Store:     Store{Kind: "sqlite"},
		Weaviate:  Weaviate{URL: "http://127.0.0.1:8080", GRPC: "127.0.0.1:50051", Collection: "Chunk", Consistency: "QUORUM", Writers: 8},
		Embedding: Embedding{Kind: "builtin", Batch: 64},
		Splitting: Splitting{Mode: "structure", Tokens: 200, Overlap: 30},
		Limits:    Limits{Chunks: 250_000, ParseTime: 30 * time.Second, DocumentBytes: 128 << 20},
		Delivery: Delivery{
			Contract: "at-least-once", Attempts: 3, Backoff: Backoff{Initial: time.Second, Max: time.Minute},
			RemovalDelay: 30 * time.Second, ViewLag: 10 * time.Second,
		},
		API:     API{Listen: "127.0.0.1:8484"},
		origins: map[string]Origin{},
	}
}

// Origin says where a value came from; the zero Origin is the default.
type Origin struct {
	// Source is the name of the file, the variable or the flag.
	Source string
	// Line in the file, from 1; 0 for variables and flags.
	Line int
}

// String is "waymark.yaml:12", "WAYMARK_KAFKA_BROKERS" or "--kafka.brokers"; "" for the default.
func (o Origin) String() string {
	if o.Line == 0 {
		return o.Source
	}
	return fmt.Sprintf("%s:%d", o.Source, o.Line)
}

// OriginOf the value of a key such as "kafka.brokers".
func (c *Config) OriginOf(key string) Origin { return c.origins[key] }

func (c *Config) isSet(key string) bool { return c.origins[key] != Origin{} }
