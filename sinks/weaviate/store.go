// Package weaviate is the vector store for production: a Weaviate server of version 1.27 or later.
//
// What the server has to be told: AUTOSCHEMA_ENABLED=false, and from 1.30 on USE_INVERTED_SEARCHABLE=false, without which
// text search misses what was written since the last flush.
//
// A write that was cut short can leave objects without their vectors in the index. Writing them again repairs nothing. So
// every object whose write did not end well is a suspect: the next write of it waits until the first one cannot be running
// any more, deletes the object, inserts it, and looks for it by its vector. A server that is killed can lose the vectors of
// its last acknowledged writes as well: sinks.Forgetful.
package weaviate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"time"

	"github.com/weaviate/weaviate-go-client/v4/weaviate"
	"github.com/weaviate/weaviate-go-client/v4/weaviate/data/replication"

	"github.com/waymarkhq/waymark/sinks"
)

const (
	// defaultTimeout is that of one request. It is generous: a batch that is given up has to be repaired.
	defaultTimeout = 60 * time.Second
	// defaultSettle is how long after an unanswered write the server may still be working on it.
	defaultSettle = 10 * time.Second
	// defaultWriters is beyond what makes a server of a few cores faster.
	defaultWriters = 8
	// defaultCollection holds the chunks unless another is named.
	defaultCollection = "Chunk"
)

// Options of a store. URL, Model and Dimensions are required.
type Options struct {
	URL    string // http://host:port or https://host:port
	GRPC   string // host:port; batches go there if it is set, which is about 1.4 times as fast as REST
	APIKey string // sent as a bearer token; never logged
	// Token gives the bearer token instead, for OpenID Connect. It is asked for every request; several goroutines may call
	// it at once.
	Token func(context.Context) (string, error)
	// TLS is used for both, when URL begins with https; nil means the system's roots. Certificates are verified.
	TLS        *tls.Config
	Collection string // "Chunk" if empty; begins with a capital letter
	// Tenant of the collection and of the chunk ids. If it is set, the collection is made with multi-tenancy, and every
	// tenant has its own shard.
	Tenant string
	// ConsistencyLevel of writes and reads: ONE, QUORUM (if empty) or ALL.
	ConsistencyLevel string
	// Replication is how many replicas the collection is made with; the server's default if 0. One that is there keeps its own.
	Replication int
	// Writers bounds the write requests at one time; 8 if 0. More wait.
	Writers    int
	Model      string
	Dimensions int
	Timeout    time.Duration // of one request; a minute if 0
}

// Store is a collection of a server. It implements sinks.Forgetful, sinks.Searcher and sinks.Scanner.
type Store struct {
	options  Options
	settle   time.Duration
	client   *weaviate.Client
	http     *transport
	grpc     *grpcBatches  // nil: batches go by REST
	writers  chan struct{} // full: no more write requests now
	suspects *suspects
	nodes    nodes
	// replicated collections take a consistency level in queries; others refuse it.
	replicated bool
}

var (
	_ sinks.Sink     = (*Store)(nil)
	_ sinks.Searcher = (*Store)(nil)
	_ sinks.Scanner  = (*Store)(nil)
)

var collectionName = regexp.MustCompile(`^[A-Z][_0-9A-Za-z]*$`)

func (o Options) withDefaults() Options {
	if o.Collection == "" {
		o.Collection = defaultCollection
	}
	if o.ConsistencyLevel == "" {
		o.ConsistencyLevel = replication.ConsistencyLevel.QUORUM
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Writers == 0 {
		o.Writers = defaultWriters
	}
	return o
}

// validate returns everything that is wrong with the options at once.
func (o Options) validate() error {
	var errs []error
	if u, err := url.Parse(o.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		errs = append(errs, fmt.Errorf("url %q is not http(s)://host:port", o.URL))
	} else if u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.User != nil {
		errs = append(errs, errors.New("url has more than scheme, host and port"))
	}
	if !collectionName.MatchString(o.Collection) {
		errs = append(errs, fmt.Errorf("collection %q does not begin with a capital letter and go on with letters, digits and _", o.Collection))
	}
	switch o.ConsistencyLevel { // the server takes a wrong one without a word
	case replication.ConsistencyLevel.ONE, replication.ConsistencyLevel.QUORUM, replication.ConsistencyLevel.ALL:
	default:
		errs = append(errs, fmt.Errorf("consistency level %q is not ONE, QUORUM or ALL", o.ConsistencyLevel))
	}
	if o.Timeout < 0 {
		errs = append(errs, fmt.Errorf("timeout %s is negative", o.Timeout))
	}
	if o.APIKey != "" && o.Token != nil {
		errs = append(errs, errors.New("an API key and a token"))
	}
	if o.Replication < 0 || o.Writers < 0 {
		errs = append(errs, fmt.Errorf("replication %d or writers %d below 0", o.Replication, o.Writers))
	}
	errs = append(errs, sinks.Space{Model: o.Model, Dimensions: o.Dimensions}.Validate())
	return errors.Join(errs...)
}

// Open connects to a server and makes the collection (and the tenant) if it is not there. A collection of another model,
// of other dimensions or of another layout is refused, the first two with a *sinks.SpaceError. ctx bounds the whole.
func Open(ctx context.Context, options Options) (*Store, error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, fmt.Errorf("open weaviate: %w", err)
	}
	s := &Store{options: options, settle: defaultSettle, writers: make(chan struct{}, options.Writers)}
	if err := s.connect(); err != nil {
		return nil, errors.Join(fmt.Errorf("open weaviate %s: %w", options.URL, err), s.Close())
	}
	s.suspects = newSuspects(time.Now())
	if err := s.prepareSchema(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open weaviate %s: %w", options.URL, err), s.Close())
	}
	return s, nil
}

// connect makes the clients; nothing is sent yet.
func (s *Store) connect() error {
	o := s.options
	u, err := url.Parse(o.URL)
	if err != nil {
		return err
	}
	var tlsConfig *tls.Config
	if u.Scheme == "https" {
		tlsConfig = o.TLS.Clone()
		if tlsConfig == nil {
			tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		}
	}
	token := o.Token
	if o.APIKey != "" {
		token = func(context.Context) (string, error) { return o.APIKey, nil }
	}
	s.http = newTransport(tlsConfig, token)
	// The client's own gRPC is not used: it verifies no certificate and cannot be closed.
	s.client, err = weaviate.NewClient(weaviate.Config{
		Host: u.Host, Scheme: u.Scheme, ConnectionClient: s.http.client(o.Timeout),
	})
	if err != nil || o.GRPC == "" {
		return err
	}
	s.grpc, err = dialGRPC(o.GRPC, tlsConfig, token)
	return err
}

// Close closes the connections. Calls that run fail.
func (s *Store) Close() error {
	if s.http != nil {
		s.http.close()
	}
	if s.grpc != nil {
		return s.grpc.close()
	}
	return nil
}

// request bounds a request that must not be given up with the caller's context, because its outcome would be open.
func (s *Store) request(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), s.options.Timeout)
}
