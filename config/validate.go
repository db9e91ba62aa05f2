package config

import (
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/blob"
)

const openAIURL = "https://api.openai.com/v1"

// Limits of the values; docs name them.
const (
	maxPartitions  = 1024
	maxReplication = 16
	maxBatch       = 2048
	minTokens      = 16
	maxTokens      = 8192
	maxAttempts    = 100
	maxChunks      = 1_000_000
	maxDocument    = 1 << 30
	maxBackoff     = time.Hour
	maxDelay       = 24 * time.Hour
	leastSearch    = time.Second // what view_lag leaves of removal_delay is the time of a search
	maxWriters     = 64
)

// Validate reports everything that is wrong with the configuration for the command, as Problems, or nil. It judges
// values only; Load also reports what could not be read.
func (c *Config) Validate(t Target) error {
	r := &report{origins: c.origins}
	c.validate(t, r)
	return r.err()
}

func (c *Config) validate(t Target, r *report) {
	if c.DataDir == "" {
		r.add("data_dir", "must name a folder")
	}
	c.checkKafka(t, r)
	c.checkStandby(t, r)
	c.checkSecurity(t, r)
	c.checkStore(t, r)
	c.checkEmbedding(t, r)
	c.checkSplitting(r)
	c.checkLimits(r)
	c.checkParsers(r)
	c.checkBlobs(r)
	c.checkDelivery(r)
	c.checkListeners(t, r)
	c.checkTokens(r)
}

var topicPrefix = regexp.MustCompile(`^[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,99}$`)

func (c *Config) checkKafka(t Target, r *report) {
	k := c.Kafka
	for i, b := range k.Brokers {
		if _, err := splitAddress(b, false); err != nil {
			r.add("kafka.brokers", "%q is not host:port: %v", b, err)
		}
		if slices.Contains(k.Brokers[:i], b) {
			r.add("kafka.brokers", "%q is there twice", b)
		}
	}
	if len(k.Brokers) == 0 && (t.Command == CommandRun || t.Command == CommandTopics) {
		r.add("kafka.brokers", "must be named: `%s` works on a cluster (only `up` brings a broker of its own)", t.Command)
	}
	if !topicPrefix.MatchString(k.TopicPrefix) {
		r.add("kafka.topic_prefix", "must be 1 to 100 letters, digits, dots, underscores and dashes, not beginning with a dot")
	}
	between(r, "kafka.epoch", k.Epoch, 0, rag.MaxEpoch)
	between(r, "kafka.partitions", k.Partitions, 1, maxPartitions)
	between(r, "kafka.replication", k.Replication, 1, maxReplication)
	if t.embedded(c) && k.Replication > 1 {
		r.addFirst([]string{"kafka.replication", "kafka.brokers"},
			"%d replicas contradict the embedded broker, which is a single one; name kafka.brokers or leave replication out",
			k.Replication)
	}
}

var collection = regexp.MustCompile(`^[A-Z][_0-9A-Za-z]{0,230}$`)

// checkStandby: see Kafka.Standby.
func (c *Config) checkStandby(t Target, r *report) {
	if c.Kafka.Standby && t.embedded(c) {
		r.add("kafka.standby", "contradicts the embedded broker, beside which no other process has the roles")
	}
}

func (c *Config) checkStore(t Target, r *report) {
	r.checkKind("store.kind", c.Store.Kind, storeKinds)
	w, d := c.Weaviate, Default().Weaviate
	if c.Store.Kind == "sqlite" {
		if c.Store.Path == "" && t.Command == CommandRun && t.store() {
			r.add("store.path", "must name the SQLite file that the roles share")
		}
		if len(w.TokenCommand) == 0 {
			w.TokenCommand = nil // an empty list in the file is not the same to DeepEqual
		}
		if !reflect.DeepEqual(w, d) {
			var keys []string
			for _, f := range Fields() {
				if strings.HasPrefix(f.Key, "weaviate.") {
					keys = append(keys, f.Key)
				}
			}
			r.addFirst(keys, "contradicts store.kind: sqlite")
		}
		return
	}
	if c.Store.Path != "" {
		r.add("store.path", "contradicts store.kind: %s; only sqlite has a path", c.Store.Kind)
	}
	c.checkWeaviate(t, r)
}

func (c *Config) checkWeaviate(t Target, r *report) {
	w := c.Weaviate
	r.checkURL("weaviate.url", w.URL)
	u, err := url.Parse(w.URL)
	if err == nil && strings.Trim(u.Path, "/") != "" {
		r.add("weaviate.url", "must end after the host and the port")
	}
	if w.GRPC != "" {
		r.checkAddress("weaviate.grpc", w.GRPC, false)
		if err == nil && u.Hostname() != "" && !loopback(net.JoinHostPort(u.Hostname(), "1")) && loopback(w.GRPC) {
			r.addFirst([]string{"weaviate.grpc", "weaviate.url"},
				"weaviate.grpc (%s) is on this machine while weaviate.url is not; set it too, or to \"\" for REST only", w.GRPC)
		}
	}
	if !collection.MatchString(w.Collection) {
		r.add("weaviate.collection", "must begin with a capital and hold only letters, digits and underscores")
	}
	if !slices.Contains([]string{"ONE", "QUORUM", "ALL"}, w.Consistency) {
		r.add("weaviate.consistency", "%q is none of ONE, QUORUM, ALL", w.Consistency)
	}
	between(r, "weaviate.replication", w.Replication, 0, maxReplication)
	between(r, "weaviate.writers", w.Writers, 1, maxWriters)
	c.checkWeaviateSecurity(t, r)
}

func (c *Config) checkEmbedding(t Target, r *report) {
	e := c.Embedding
	r.checkKind("embedding.kind", e.Kind, embeddingKinds)
	between(r, "embedding.batch", e.Batch, 1, maxBatch)
	switch e.Kind {
	case "builtin":
		if e.URL != "" || e.Model != "" || e.APIKey != "" || e.APIKeyFile != "" {
			r.addFirst([]string{"embedding.url", "embedding.model", "embedding.api_key", "embedding.api_key_file", "embedding.kind"},
				"contradicts embedding.kind: builtin, which runs in this process; set kind: openai to use a service")
		}
	case "openai":
		if e.URL != "" {
			r.checkURL("embedding.url", e.URL)
		}
		if e.Model == "" {
			r.add("embedding.model", "must name the model of the service")
		}
		if (e.URL == "" || e.URL == openAIURL) && t.embedder() && e.APIKey == "" && e.APIKeyFile == "" {
			r.add("embedding.api_key_file", "%s needs a key: set %sEMBEDDING_API_KEY or name its file", openAIURL, variablePrefix)
		}
	}
}

func (c *Config) checkSplitting(r *report) {
	s := c.Splitting
	r.checkKind("splitting.mode", s.Mode, splittingModes)
	between(r, "splitting.tokens", s.Tokens, minTokens, maxTokens)
	between(r, "splitting.parent_tokens", s.ParentTokens, 0, maxTokens)
	if s.ParentTokens > 0 && s.ParentTokens <= s.Tokens {
		r.addFirst([]string{"splitting.parent_tokens", "splitting.tokens"},
			"parents of %d tokens are not larger than chunks of %d", s.ParentTokens, s.Tokens)
	}
	if s.Overlap < 0 {
		r.add("splitting.overlap", "%d is below 0", s.Overlap)
	}
	if s.Overlap > s.Tokens/2 && s.Tokens >= minTokens {
		r.addFirst([]string{"splitting.overlap", "splitting.tokens"},
			"an overlap of %d is more than half of %d tokens", s.Overlap, s.Tokens)
	}
}

func (c *Config) checkLimits(r *report) {
	between(r, "limits.chunks", c.Limits.Chunks, 1, maxChunks)
	between(r, "limits.document_bytes", c.Limits.DocumentBytes, 1<<10, maxDocument)
	lasting(r, "limits.parse_time", c.Limits.ParseTime, 100*time.Millisecond, maxDelay)
}

// checkBlobs does not repeat the URL, which may hold what should not be shown.
func (c *Config) checkBlobs(r *report) {
	if c.Blobs.URL == "" {
		return
	}
	u, err := url.Parse(c.Blobs.URL)
	switch {
	case err != nil:
		r.add("blobs.url", "is not a URL such as file:///srv/blobs or s3://bucket?region=eu-central-1")
	case u.User != nil:
		r.add("blobs.url", "holds a user or a password; give them as the SDK of the bucket takes them, by variables or files")
	default:
		if err := blob.Check(c.Blobs.URL); err != nil {
			r.add("blobs.url", "%v", err)
		}
	}
}

func (c *Config) checkDelivery(r *report) {
	d := c.Delivery
	switch d.Contract {
	case "at-least-once":
	case "at-most-once":
		r.add("delivery.contract", "the document pipeline loses nothing and so refuses at-most-once; it is for stages of your own")
	case "exactly-once":
		r.add("delivery.contract", "exactly-once is not yet available; this release has at-least-once")
	default:
		r.add("delivery.contract", "%q is not at-least-once", d.Contract)
	}
	between(r, "delivery.attempts", d.Attempts, 1, maxAttempts)
	lasting(r, "delivery.backoff.initial", d.Backoff.Initial, time.Millisecond, maxBackoff)
	lasting(r, "delivery.backoff.max", d.Backoff.Max, time.Millisecond, maxBackoff)
	if d.Backoff.Max < d.Backoff.Initial {
		r.addFirst([]string{"delivery.backoff.max", "delivery.backoff.initial"}, "max (%s) is below initial (%s)",
			formatDuration(d.Backoff.Max), formatDuration(d.Backoff.Initial))
	}
	lasting(r, "delivery.removal_delay", d.RemovalDelay, time.Second, maxDelay)
	lasting(r, "delivery.view_lag", d.ViewLag, 100*time.Millisecond, maxDelay)
	if d.RemovalDelay < d.ViewLag+leastSearch {
		r.addFirst([]string{"delivery.removal_delay", "delivery.view_lag"},
			"removal_delay (%s) must be longer than view_lag (%s) by 1s at least, the time that a search has, or readers could miss chunks",
			formatDuration(d.RemovalDelay), formatDuration(d.ViewLag))
	}
}

func (c *Config) checkListeners(t Target, r *report) {
	r.checkAddress("api.listen", c.API.Listen, true)
	r.checkAddress("broker.listen", c.Broker.Listen, true)
	if t.api() && !loopback(c.API.Listen) && len(c.API.Tokens) == 0 && !t.Insecure {
		r.add("api.listen", "%s can be reached from other machines: set api.tokens, or say --insecure", c.API.Listen)
	}
	if (t.Command == CommandBroker || t.embedded(c)) && !loopback(c.Broker.Listen) && !t.Insecure {
		r.add("broker.listen", "%s can be reached from other machines and the embedded broker knows no login: say --insecure if that is meant",
			c.Broker.Listen)
	}
	if c.Monitor.Listen == "" {
		return
	}
	r.checkAddress("monitor.listen", c.Monitor.Listen, true)
	if c.Monitor.Listen == c.API.Listen && !strings.HasSuffix(c.API.Listen, ":0") {
		r.addFirst([]string{"monitor.listen", "api.listen"}, "api.listen and monitor.listen are the same address")
	}
}

func (c *Config) checkTokens(r *report) {
	names, hashes := map[string]bool{}, map[[32]byte]bool{}
	for _, t := range c.API.Tokens {
		if names[t.Name] {
			r.add("api.tokens", "two tokens are named %q", t.Name)
		}
		if hashes[t.Hash] {
			r.add("api.tokens", "token %q has the hash of another one", t.Name)
		}
		names[t.Name], hashes[t.Hash] = true, true
	}
}

func between(r *report, key string, n, low, high int) {
	if n < low || n > high {
		r.add(key, "%d is not between %d and %d", n, low, high)
	}
}

func lasting(r *report, key string, d, low, high time.Duration) {
	if d < low || d > high {
		r.add(key, "%s is not between %s and %s", formatDuration(d), formatDuration(low), formatDuration(high))
	}
}

// checkAddress reports what is not host:port; a listener may leave the host out and ask for port 0.
func (r *report) checkAddress(key, address string, listener bool) {
	if _, err := splitAddress(address, listener); err != nil {
		r.add(key, "%q is not host:port: %v", address, err)
	}
}

// checkURL reports what is not a plain http or https URL. It does not repeat the URL, which may hold a password.
func (r *report) checkURL(key, text string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		r.add(key, "is not a URL that begins with http:// or https://")
	case u.User != nil:
		r.add(key, "holds a user or a password; give the key by variable or file instead")
	case u.RawQuery != "" || u.Fragment != "":
		r.add(key, "must have no ? or #")
	}
}

type addressError string

func (e addressError) Error() string { return string(e) }

func splitAddress(address string, listener bool) (host string, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", addressError("write it like 127.0.0.1:8484")
	}
	if host == "" && !listener {
		return "", addressError("the host is missing")
	}
	if strings.ContainsAny(host, "/@ ") {
		return "", addressError("a host has no /, @ or blank")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 && !listener {
		return "", addressError("the port must be a number from 1 to 65535")
	}
	return host, nil
}

// loopback reports whether only this machine can reach the address. A host name other than localhost may stand for
// any address.
func loopback(address string) bool {
	host, err := splitAddress(address, true)
	if err != nil {
		return true // reported as malformed
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
