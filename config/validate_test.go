package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/config"
)

const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

func run(roles ...string) config.Target {
	return config.Target{Command: config.CommandRun, Roles: roles}
}

func TestContradictionsAndRequirements(t *testing.T) {
	insecure := config.Target{Command: config.CommandUp, Insecure: true}
	cluster := "kafka.brokers=a:1"
	cases := []struct {
		name   string
		target config.Target
		flags  string // key=value, blank between
		want   string // "" means none
	}{
		{"run needs brokers", run("chunker"), "", "kafka.brokers: must be named: `run` works on a cluster (only `up` brings a broker of its own)"},
		{"topics needs brokers", config.Target{Command: config.CommandTopics}, "", "kafka.brokers: must be named: `topics` works on a cluster (only `up` brings a broker of its own)"},
		{"run with sqlite names the path", run("indexer"), cluster, "store.path: must name the SQLite file that the roles share"},
		{"a role without the store does not", run("chunker", "tracker"), cluster, ""},
		{"replicas of the embedded broker", up, "kafka.replication=3", "--kafka.replication: 3 replicas contradict the embedded broker, which is a single one; name kafka.brokers or leave replication out"},
		{"one replica of the embedded broker", up, "kafka.replication=1 kafka.partitions=12", ""},
		{"same broker twice", up, "kafka.brokers=a:1,a:1", `--kafka.brokers: "a:1" is there twice`},
		{"broker without port", up, "kafka.brokers=a", `--kafka.brokers: "a" is not host:port: write it like 127.0.0.1:8484`},
		{"broker without host", up, "kafka.brokers=:9", `--kafka.brokers: ":9" is not host:port: the host is missing`},
		{"broker as URL", up, "kafka.brokers=kafka://a:9", `--kafka.brokers: "kafka://a:9" is not host:port: write it like 127.0.0.1:8484`},
		{"prefix with a blank", up, "kafka.topic_prefix=a/b", "--kafka.topic_prefix: must be 1 to 100 letters, digits, dots, underscores and dashes, not beginning with a dot"},
		{"TLS off with a file", up, cluster + " kafka.tls.server_name=x", "--kafka.tls.server_name: contradicts kafka.tls.enabled: false"},
		{"certificate without key", up, cluster + " kafka.tls.enabled=true kafka.tls.cert_file=validate_test.go", "--kafka.tls.cert_file: cert_file and key_file go together; one is missing"},
		{"missing CA", up, cluster + " kafka.tls.enabled=true kafka.tls.ca_file=none.pem", "--kafka.tls.ca_file: cannot be read: open none.pem: no such file or directory"},
		{"TLS to the embedded broker", up, "kafka.tls.enabled=true", "--kafka.tls.enabled: contradicts the embedded broker, which has neither TLS nor SASL; name kafka.brokers"},
		{"user without mechanism", up, cluster + " kafka.sasl.username=u", "--kafka.sasl.username: needs kafka.sasl.mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"},
		{"mechanism without password", up, cluster + " kafka.sasl.mechanism=PLAIN kafka.sasl.username=u", "--kafka.sasl.mechanism: needs kafka.sasl.username and a password (WAYMARK_KAFKA_SASL_PASSWORD or kafka.sasl.password_file)"},
		{"unknown mechanism", up, cluster + " kafka.sasl.mechanism=GSSAPI", `--kafka.sasl.mechanism: "GSSAPI" is none of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER`},
		{"token of a file", up, cluster + " kafka.sasl.mechanism=OAUTHBEARER kafka.sasl.token_file=validate_test.go", ""},
		{"token of a command", up, cluster + " kafka.sasl.mechanism=OAUTHBEARER kafka.sasl.token_command=cat,/run/token", ""},
		{"no token", up, cluster + " kafka.sasl.mechanism=OAUTHBEARER", "--kafka.sasl.mechanism: needs kafka.sasl.token_file or kafka.sasl.token_command"},
		{"two tokens", up, cluster + " kafka.sasl.mechanism=OAUTHBEARER kafka.sasl.token_file=validate_test.go kafka.sasl.token_command=x", "--kafka.sasl.token_command: token_file and token_command contradict each other: keep one"},
		{"token file that is not there", up, cluster + " kafka.sasl.mechanism=OAUTHBEARER kafka.sasl.token_file=none", "--kafka.sasl.token_file: cannot be read: open none: no such file or directory"},
		{"token and user", up, cluster + " kafka.sasl.mechanism=OAUTHBEARER kafka.sasl.token_command=x kafka.sasl.username=u", "--kafka.sasl.username: contradicts kafka.sasl.mechanism: OAUTHBEARER, which has a token instead"},
		{"token without its mechanism", up, cluster + " kafka.sasl.token_command=x", "--kafka.sasl.token_command: needs kafka.sasl.mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"},
		{"standby", run("chunker"), cluster + " kafka.standby=true", ""},
		{"standby on the embedded broker", up, "kafka.standby=true", "--kafka.standby: contradicts the embedded broker, beside which no other process has the roles"},
		{"unknown store", up, "store.kind=pinecone", `--store.kind: "pinecone" is none of sqlite, weaviate`},
		{"weaviate", up, "store.kind=weaviate", ""},
		{"weaviate elsewhere", up, "store.kind=weaviate weaviate.url=https://w weaviate.grpc=w:50051", ""},
		{"weaviate by REST only", up, "store.kind=weaviate weaviate.url=https://w weaviate.grpc=", ""},
		{"weaviate in two places", up, "store.kind=weaviate weaviate.url=https://w", `--weaviate.url: weaviate.grpc (127.0.0.1:50051) is on this machine while weaviate.url is not; set it too, or to "" for REST only`},
		{"weaviate below a path", up, "store.kind=weaviate weaviate.url=http://127.0.0.1:8080/v1", "--weaviate.url: must end after the host and the port"},
		{"weaviate without a port", up, "store.kind=weaviate weaviate.grpc=127.0.0.1", `--weaviate.grpc: "127.0.0.1" is not host:port: write it like 127.0.0.1:8484`},
		{"weaviate with a path", up, "store.kind=weaviate store.path=x", "--store.path: contradicts store.kind: weaviate; only sqlite has a path"},
		{"collection in small letters", up, "store.kind=weaviate weaviate.collection=chunk", "--weaviate.collection: must begin with a capital and hold only letters, digits and underscores"},
		{"weaviate settings with sqlite", up, "weaviate.url=http://w:1", "--weaviate.url: contradicts store.kind: sqlite"},
		{"weaviate with everything", up, "store.kind=weaviate weaviate.url=https://w weaviate.grpc=w:1 weaviate.tls.ca_file=validate_test.go weaviate.token_file=validate_test.go weaviate.replication=3 weaviate.consistency=ALL weaviate.writers=2 weaviate.tenant=t", ""},
		{"consistency", up, "store.kind=weaviate weaviate.consistency=SOME", `--weaviate.consistency: "SOME" is none of ONE, QUORUM, ALL`},
		{"weaviate key and token", up, "store.kind=weaviate weaviate.api_key_file=validate_test.go weaviate.token_command=x", "--weaviate.api_key_file: validate_test.go holds more than one line\n--weaviate.token_command: an API key and an OIDC token contradict each other: keep one"},
		{"weaviate authority without TLS", up, "store.kind=weaviate weaviate.tls.ca_file=validate_test.go", "--weaviate.tls.ca_file: contradicts weaviate.url, which does not begin with https"},
		{"weaviate certificate without key", up, "store.kind=weaviate weaviate.url=https://w weaviate.grpc=w:1 weaviate.tls.cert_file=validate_test.go", "--weaviate.tls.cert_file: cert_file and key_file go together; one is missing"},
		{"embedder that is planned", up, "embedding.kind=ollama", "--embedding.kind: ollama is not yet available; this release has builtin, openai"},
		{"builtin with a model", up, "embedding.model=m", "--embedding.model: contradicts embedding.kind: builtin, which runs in this process; set kind: openai to use a service"},
		{"openai without model", up, "embedding.kind=openai embedding.url=http://127.0.0.1:1/v1", "embedding.model: must name the model of the service"},
		{"openai without key", up, "embedding.kind=openai embedding.model=m", "embedding.api_key_file: https://api.openai.com/v1 needs a key: set WAYMARK_EMBEDDING_API_KEY or name its file"},
		{"a role that does not embed needs no key", run("chunker"), cluster + " embedding.kind=openai embedding.model=m", ""},
		{"own service without key", up, "embedding.kind=openai embedding.model=m embedding.url=http://127.0.0.1:1/v1", ""},
		{"URL with a password", up, "embedding.kind=openai embedding.model=m embedding.url=http://u:hunter2@h", "--embedding.url: holds a user or a password; give the key by variable or file instead"},
		{"URL without scheme", up, "embedding.kind=openai embedding.model=m embedding.url=h:80", "--embedding.url: is not a URL that begins with http:// or https://"},
		{"at-most-once", up, "delivery.contract=at-most-once", "--delivery.contract: the document pipeline loses nothing and so refuses at-most-once; it is for stages of your own"},
		{"exactly-once", up, "delivery.contract=exactly-once", "--delivery.contract: exactly-once is not yet available; this release has at-least-once"},
		{"backoff upside down", up, "delivery.backoff.initial=2m", "--delivery.backoff.initial: max (1m) is below initial (2m)"},
		{"removal before the view lag", up, "delivery.view_lag=30s", "--delivery.view_lag: removal_delay (30s) must be longer than view_lag (30s) by 1s at least, the time that a search has, or readers could miss chunks"},
		{"overlap below zero", up, "splitting.overlap=-1", "--splitting.overlap: -1 is below 0"},
		{"blobs of a folder", run("api"), cluster + " blobs.url=file:///srv/blobs store.path=s", ""},
		{"blobs of a bucket", run("chunker"), cluster + " blobs.url=s3://bucket?region=eu-central-1", ""},
		{"blobs at a path", up, "blobs.url=/srv/blobs", "--blobs.url: the scheme \"\" is not known; there are file and s3"},
		{"blobs in memory", up, "blobs.url=mem://", "--blobs.url: the scheme \"mem\" is not known; there are file and s3"},
		{"blobs with a password", up, "blobs.url=s3://u:hunter2@bucket", "--blobs.url: holds a user or a password; give them as the SDK of the bucket takes them, by variables or files"},
		{"unknown mode", up, "splitting.mode=pages", "--splitting.mode: \"pages\" is none of structure, sentence, tokens, page"},
		{"parents", up, "splitting.mode=page splitting.parent_tokens=1000", ""},
		{"small parents", up, "splitting.parent_tokens=200", "--splitting.parent_tokens: parents of 200 tokens are not larger than chunks of 200"},
		{"open API", up, "api.listen=:8484", "--api.listen: :8484 can be reached from other machines: set api.tokens, or say --insecure"},
		{"open API by name", up, "api.listen=myhost:8484", "--api.listen: myhost:8484 can be reached from other machines: set api.tokens, or say --insecure"},
		{"open API on purpose", insecure, "api.listen=0.0.0.0:8484", ""},
		{"loopback forms", up, "api.listen=localhost:1 monitor.listen=[::1]:2 broker.listen=127.3.2.1:0", ""},
		{"a role without the API does not listen", run("chunker"), cluster + " api.listen=0.0.0.0:1", ""},
		{"open embedded broker", up, "broker.listen=0.0.0.0:9092", "--broker.listen: 0.0.0.0:9092 can be reached from other machines and the embedded broker knows no login: say --insecure if that is meant"},
		{"open broker settings on a cluster", up, cluster + " broker.listen=0.0.0.0:9092", ""},
		{"one address twice", up, "monitor.listen=127.0.0.1:8484", "--monitor.listen: api.listen and monitor.listen are the same address"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			flags := map[string]string{}
			for f := range strings.FieldsSeq(tc.flags) {
				key, value, _ := strings.Cut(f, "=")
				flags[key] = value
			}
			got := strings.Join(problems(t, config.Sources{Flags: flags}, tc.target), "\n")
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	cases := []struct {
		key       string
		low, high int
		unit      string
	}{
		{"kafka.epoch", 0, 8191, ""}, {"kafka.partitions", 1, 1024, ""}, {"weaviate.replication", 0, 16, ""}, {"weaviate.writers", 1, 64, ""}, {"embedding.batch", 1, 2048, ""},
		{"splitting.tokens", 60, 8192, ""}, {"splitting.parent_tokens", 0, 8192, ""}, {"delivery.attempts", 1, 100, ""},
		{"limits.chunks", 1, 1_000_000, ""}, {"limits.parse_time", 1, 86400, "s"}, {"limits.document_bytes", 1 << 10, 1 << 30, ""},
		{"delivery.removal_delay", 11, 86400, "s"}, {"delivery.backoff.max", 1, 3600, "s"}, {"delivery.view_lag", 1, 29, "s"},
	}
	for _, tc := range cases {
		for n, ok := range map[int]bool{tc.low - 1: false, tc.low: true, tc.high: true, tc.high + 1: false} {
			flags := map[string]string{tc.key: fmt.Sprint(n) + tc.unit}
			if strings.HasPrefix(tc.key, "weaviate.") {
				flags["store.kind"] = "weaviate"
			}
			got := problems(t, config.Sources{Flags: flags}, up)
			if (got == nil) != ok {
				t.Errorf("%s=%d%s: problems %q, want none: %t", tc.key, n, tc.unit, got, ok)
			}
		}
	}
}

func TestValidateJudgesAConfigurationMadeInCode(t *testing.T) {
	c := config.Default()
	c.Kafka.Brokers = []string{"a:1"}
	if err := c.Validate(up); err != nil {
		t.Error(err)
	}
	c.Delivery.Attempts = 0
	if err := c.Validate(up); err == nil || err.Error() != "configuration: delivery.attempts: 0 is not between 1 and 100" {
		t.Errorf("got %v", err)
	}
}

func TestTokens(t *testing.T) {
	good := "ci:ingest+read:" + hash
	c := mustLoad(t, config.Sources{
		Environ: []string{"WAYMARK_API_TOKENS=" + good + ",ops:admin:" + strings.Repeat("ab", 32)},
		Flags:   map[string]string{"api.listen": "0.0.0.0:1"},
	}, up)
	if len(c.API.Tokens) != 2 || c.API.Tokens[0].Name != "ci" || strings.Join(c.API.Tokens[0].Scopes, " ") != "ingest read" {
		t.Errorf("tokens: %v", c.API.Tokens)
	}
	if c.API.Tokens[0].Hash[0] != 0x9f {
		t.Errorf("hash: %x", c.API.Tokens[0].Hash)
	}
	form := "WAYMARK_API_TOKENS: api.tokens: a token is written name:scopes:sha256, e.g. ci:ingest+read:HEX with HEX from printf %s TOKEN | sha256sum"
	for text, want := range map[string]string{
		"s3cret":                             form,
		":ingest:" + hash:                    form,
		"ci:write:" + hash:                   `WAYMARK_API_TOKENS: api.tokens: the scopes of token "ci" must be of ingest, read, admin, joined by +`,
		"ci:read:abc":                        `WAYMARK_API_TOKENS: api.tokens: the hash of token "ci" is not a SHA-256 of 64 hexadecimal digits`,
		good + ",ci:read:" + hash[2:] + "00": `WAYMARK_API_TOKENS: api.tokens: two tokens are named "ci"`,
		good + ",x:read:" + hash:             `WAYMARK_API_TOKENS: api.tokens: token "x" has the hash of another one`,
	} {
		expect(t, problems(t, config.Sources{Environ: []string{"WAYMARK_API_TOKENS=" + text}}, up), want)
	}
}
