// Package openai embeds texts with a service that speaks OpenAI's embeddings API: OpenAI itself, or Ollama, vLLM,
// llama.cpp, LocalAI, Text Embeddings Inference and others that took it over.
package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/embed"
)

// Limits and defaults of a Config.
const (
	DefaultBatch = 64
	MaxBatch     = 2048 // of OpenAI's own service
	// CallTimeout bounds a call of NewHTTPClient. A service that has lost a call would otherwise hold its batch for ever;
	// one that is only slow gets half of it next.
	CallTimeout = 30 * time.Second
)

// Config of a Client.
type Config struct {
	// URL of the service: http or https, with or without the /v1 at its end. Calls go to <URL>/v1/embeddings.
	URL string
	// Model as the service names it.
	Model string
	// APIKey is asked before every call, so that a key can be changed while the client runs: see KeyFromFile and
	// KeyFromEnv. Nil or an empty key: no Authorization header. The key never appears in an error.
	APIKey func() (string, error)
	// Batch is how many texts go into one call, 1 to MaxBatch; 0 is DefaultBatch. A service that refuses so many gets
	// fewer.
	Batch int
	// Dimensions that the vectors must have; 0 means those of the first answer.
	Dimensions int
	// HTTP makes the calls; nil is NewHTTPClient(). A time limit of its own counts as an outage when it strikes.
	HTTP *http.Client
	// Now is the clock for a Retry-After that is a date; nil is time.Now.
	Now func() time.Time
}

// Client is an embedder that asks a service. It is safe for concurrent use.
type Client struct {
	endpoint string
	model    string
	key      func() (string, error)
	http     *http.Client
	now      func() time.Time
	batch    *batchLimit
	dims     atomic.Int64 // 0 until learned
}

var _ embed.Embedder = (*Client)(nil)

// New checks c and returns a client; it does not call the service. The error names every field that is wrong.
func New(c Config) (*Client, error) {
	var errs []error
	endpoint, err := endpointOf(c.URL)
	if err != nil {
		errs = append(errs, fmt.Errorf("url: %w", err))
	}
	if c.Model == "" {
		errs = append(errs, errors.New("model: must not be empty"))
	}
	if c.Batch == 0 {
		c.Batch = DefaultBatch
	}
	if c.Batch < 1 || c.Batch > MaxBatch {
		errs = append(errs, fmt.Errorf("batch: %d is not between 1 and %d", c.Batch, MaxBatch))
	}
	if c.Dimensions < 0 {
		errs = append(errs, fmt.Errorf("dimensions: %d is negative", c.Dimensions))
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("openai embedder: %w", errors.Join(errs...))
	}
	if c.APIKey == nil {
		c.APIKey = func() (string, error) { return "", nil }
	}
	if c.HTTP == nil {
		c.HTTP = NewHTTPClient()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	client := &Client{
		endpoint: endpoint, model: c.Model, key: c.APIKey, http: c.HTTP, now: c.Now, batch: newBatchLimit(c.Batch),
	}
	client.dims.Store(int64(c.Dimensions))
	return client, nil
}

// endpointOf is the address of the embeddings call of the service at base.
func endpointOf(base string) (string, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return "", errors.New("cannot be parsed") // the error of url.Parse repeats the URL, and with it a password
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", errors.New("must be http://host… or https://host…")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("must have no user, query or fragment; the key has a place of its own")
	}
	u = u.JoinPath() // cleans the path
	if !strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/v1") {
		u = u.JoinPath("v1")
	}
	return u.JoinPath("embeddings").String(), nil
}

// NewHTTPClient returns a client that uses no proxy, whatever the environment says, and follows no redirect: a service
// that has moved is a matter of configuration, and the key is not for another host. A call has CallTimeout.
func NewHTTPClient() *http.Client {
	return &http.Client{
		Timeout: CallTimeout,
		Transport: &http.Transport{
			MaxIdleConnsPerHost: 16,
			IdleConnTimeout:     90 * time.Second,
			TLSHandshakeTimeout: 10 * time.Second,
			ForceAttemptHTTP2:   true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Model is the model's name as configured.
func (c *Client) Model() string { return c.model }

// Dimensions is the configured length of a vector, or that of the first answer; 0 before it.
func (c *Client) Dimensions() int { return int(c.dims.Load()) }

// Settings never changes: texts are sent as they are.
func (c *Client) Settings() string { return "" }

// Paid is true.
func (c *Client) Paid() bool { return true }

// Canary asks for the vectors of known-good texts. Its error is an outage, unless the caller gave up: a service that
// cannot do these can do nothing. The first canary that passes fixes Dimensions.
func (c *Client) Canary(ctx context.Context) error {
	vectors, err := c.canaryVectors(ctx)
	if err == nil {
		err = c.learn(vectors)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	var e *embed.Error
	if !errors.As(err, &e) {
		e = &embed.Error{Reason: embed.ReasonMisconfigured, Err: err}
	}
	outage := *e
	outage.Class = rag.ClassOutage
	return &outage
}

// canaryVectors asks for the canary texts in one call, and one by one where the service takes no more.
func (c *Client) canaryVectors(ctx context.Context) ([][]float32, error) {
	texts := embed.CanaryTexts()
	vectors, err := c.call(ctx, texts)
	if no := (*refusal)(nil); !errors.As(err, &no) {
		return vectors, err
	}
	vectors = nil
	for i := range texts {
		one, err := c.call(ctx, texts[i:i+1])
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, one...)
	}
	return vectors, nil
}

// learn checks the vectors of the canary texts and takes their length for the model's, if it is not known.
func (c *Client) learn(vectors [][]float32) error {
	dims := c.Dimensions()
	if dims == 0 {
		dims = len(vectors[0])
	}
	for _, v := range vectors {
		if len(v) != dims && len(v) > 0 {
			return &embed.Error{Class: rag.ClassOutage, Reason: embed.ReasonMisconfigured,
				Err: fmt.Errorf("the model gives vectors of %d dimensions, expected %d", len(v), dims)}
		}
		if err := embed.Check(v, dims); err != nil {
			return err
		}
	}
	if !c.dims.CompareAndSwap(0, int64(dims)) && c.Dimensions() != dims {
		return c.learn(vectors) // another call was first
	}
	return nil
}
