package api

import (
	"errors"
	"fmt"
	"time"
)

// Config holds the limits of the API. A zero field means its default.
type Config struct {
	// Tokens that callers may present. None: everybody who can connect may do everything.
	Tokens []Token
	// Insecure says that the API is open on purpose on an address that others can reach. Without it and without tokens,
	// requests must name a loopback host, so that a web page cannot reach the API through a name of its own.
	Insecure bool

	// MaxBodyBytes is the size limit of a request body and of a line of a batch. Default 8 MiB, at most 64 MiB.
	MaxBodyBytes int64
	// MaxDocumentBytes is the size limit of a document's own bytes (PUT), where there are Dependencies.Blobs. Default 128 MiB.
	MaxDocumentBytes int64
	// MaxHeaderBytes is the size limit of the request line and the headers together. Default 32 KiB.
	MaxHeaderBytes int
	// MaxConnections is the number of connections at once; more wait until one ends. Default 2,048.
	MaxConnections int
	// MaxBatchLines is the number of lines of a batch. Default and most 1,000.
	MaxBatchLines int
	// MaxInFlight is the number of submissions that wait for their acknowledgement at once. Default 256.
	MaxInFlight int
	// MaxInFlightBytes is the size of all request bodies held at once. Default 64 MiB; at least MaxBodyBytes.
	MaxInFlightBytes int64
	// MaxWaiting is the number of requests that wait for a message at once. Default 512.
	MaxWaiting int
	// MaxSearches is the number of searches at once. Default 32.
	MaxSearches int

	// AdmissionWait is how long a request waits for its place before it is told 429. Default 500 ms.
	AdmissionWait time.Duration
	// PublishTimeout is how long an acknowledgement may take before the answer is 503. Default 30 s.
	PublishTimeout time.Duration
	// MessageWait is how long GET /v1/messages/{message_id} waits for an id that is not visible yet. Default 2 s.
	MessageWait time.Duration
	// ViewLag is how far the views may lag behind before a search is refused. Default 10 s.
	ViewLag time.Duration
	// ReadTimeout is how long an answer that only reads may take. Default 10 s.
	ReadTimeout time.Duration
	// SearchTimeout is how long a search may take. ViewLag and SearchTimeout together must not exceed the delay after which
	// superseded chunks are removed: a search that takes longer finds a part of what it takes for served, and is refused.
	// Default and most: ReadTimeout.
	SearchTimeout time.Duration

	// HeaderTimeout is how long the headers of a request may take. Default 10 s.
	HeaderTimeout time.Duration
	// BodyTimeout is how long a body may stand still. A body must also keep an average of MinBodyRate after this time.
	// Default 30 s.
	BodyTimeout time.Duration
	// WriteTimeout is how long a piece of 64 KiB of an answer may take. Default 30 s.
	WriteTimeout time.Duration
	// IdleTimeout is how long a connection may stand idle between requests. Default 2 min.
	IdleTimeout time.Duration
}

// Limits that are constants.
const (
	// MinBodyRate is the least average speed of an upload, in bytes per second.
	MinBodyRate = 1 << 10
	// MaxURIBytes is the size limit of a request's path and query.
	MaxURIBytes = 16 << 10
	// MaxHits is the highest k of a search.
	MaxHits = 1000
	// MaxQueryBytes is the size limit of the text of a search.
	MaxQueryBytes = 4 << 10
	// MaxParentBytes is how much text of parents one answer of a search holds: that of the best hits.
	MaxParentBytes = 4 << 20
	// MaxFilters is the number of filters of a search.
	MaxFilters = 64
	// MaxPage is the highest limit of a list.
	MaxPage = 500
	// MaxWaitIDs is the number of messages that one POST /v1/messages:wait may name.
	MaxWaitIDs = 10_000
	// MaxWait is the longest time that POST /v1/messages:wait waits.
	MaxWait = 30 * time.Second
	// MaxReplays is the number of letters that one replay or discard by filter looks at.
	MaxReplays = 10_000
	// MaxJSONDepth is how deep JSON may be nested.
	MaxJSONDepth = 64

	// MaxUploads is the number of bodies that go to the blob store at once.
	MaxUploads = 16

	maxBodyBytesCeiling = 64 << 20
	maxBatchLines       = 1000
)

// withDefaults fills in the fields that are zero.
func (c Config) withDefaults() Config {
	orInt := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	orInt64 := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	orTime := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	orInt64(&c.MaxBodyBytes, 8<<20)
	orInt64(&c.MaxDocumentBytes, 128<<20)
	orInt(&c.MaxHeaderBytes, 32<<10)
	orInt(&c.MaxConnections, 2048)
	orInt(&c.MaxBatchLines, maxBatchLines)
	orInt(&c.MaxInFlight, 256)
	orInt64(&c.MaxInFlightBytes, max(64<<20, c.MaxBodyBytes))
	orInt(&c.MaxWaiting, 512)
	orInt(&c.MaxSearches, 32)
	orTime(&c.AdmissionWait, 500*time.Millisecond)
	orTime(&c.PublishTimeout, 30*time.Second)
	orTime(&c.MessageWait, 2*time.Second)
	orTime(&c.ViewLag, 10*time.Second)
	orTime(&c.ReadTimeout, 10*time.Second)
	orTime(&c.SearchTimeout, c.ReadTimeout)
	orTime(&c.HeaderTimeout, 10*time.Second)
	orTime(&c.BodyTimeout, 30*time.Second)
	orTime(&c.WriteTimeout, 30*time.Second)
	orTime(&c.IdleTimeout, 2*time.Minute)
	return c
}

// Validate returns every fault of the configuration, joined; zero fields count as their defaults.
func (c Config) Validate() error {
	c = c.withDefaults()
	var faults []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("api: "+format, args...))
		}
	}
	refuse(c.MaxBodyBytes < 1<<10 || c.MaxBodyBytes > maxBodyBytesCeiling, "MaxBodyBytes %d is not between 1 KiB and 64 MiB", c.MaxBodyBytes)
	refuse(c.MaxDocumentBytes < 1<<10, "MaxDocumentBytes %d is below 1 KiB", c.MaxDocumentBytes)
	refuse(c.MaxHeaderBytes < 4<<10 || c.MaxHeaderBytes > 1<<20, "MaxHeaderBytes %d is not between 4 KiB and 1 MiB", c.MaxHeaderBytes)
	refuse(c.MaxConnections < 1, "MaxConnections %d is below 1", c.MaxConnections)
	refuse(c.MaxBatchLines < 1 || c.MaxBatchLines > maxBatchLines, "MaxBatchLines %d is not between 1 and %d", c.MaxBatchLines, maxBatchLines)
	refuse(c.MaxInFlight < 1, "MaxInFlight %d is below 1", c.MaxInFlight)
	refuse(c.MaxInFlightBytes < c.MaxBodyBytes, "MaxInFlightBytes %d is below MaxBodyBytes %d: no body of that size could be taken", c.MaxInFlightBytes, c.MaxBodyBytes)
	refuse(c.MaxWaiting < 1, "MaxWaiting %d is below 1", c.MaxWaiting)
	refuse(c.MaxSearches < 1, "MaxSearches %d is below 1", c.MaxSearches)
	for name, d := range map[string]time.Duration{
		"AdmissionWait": c.AdmissionWait, "PublishTimeout": c.PublishTimeout, "MessageWait": c.MessageWait,
		"ViewLag": c.ViewLag, "ReadTimeout": c.ReadTimeout, "SearchTimeout": c.SearchTimeout, "HeaderTimeout": c.HeaderTimeout,
		"BodyTimeout": c.BodyTimeout, "WriteTimeout": c.WriteTimeout, "IdleTimeout": c.IdleTimeout,
	} {
		refuse(d < 0, "%s %s is negative", name, d)
	}
	refuse(c.MessageWait > MaxWait, "MessageWait %s is above %s", c.MessageWait, MaxWait)
	for i, t := range c.Tokens {
		if err := t.validate(); err != nil {
			faults = append(faults, fmt.Errorf("api: token %d (%q): %w", i+1, t.Name, err))
		}
	}
	return errors.Join(faults...)
}

// Retention of a message id by the pipeline: sent again after that, it is a new submission.
const messageIDRetention = 7 * 24 * time.Hour
