// Package embed says what an embedder is: something that turns texts into vectors of one length, tells a failure of
// one text from a failure of the whole call, and says in which class each falls.
package embed

import "context"

// Embedder turns texts into vectors. All methods may be called concurrently.
type Embedder interface {
	// Embed returns one result per text, in order. It neither keeps nor changes texts, and no two results share memory.
	//
	// A failure of a single text (refused by the service, a vector that fails Check) is that text's Result.Err, of class
	// message or transient; the other texts are not affected. A failure that concerns the call as a whole is the error,
	// with an *Error in its chain: class outage when the dependency looks away (nobody answers, overloaded, no permission, replies
	// that cannot be read), transient otherwise. An outage is a suspicion: the caller confirms it with Canary, and where
	// the canary passes it looks for the text that causes it by halving the batch.
	//
	// With an error, results is nil or still has one entry per text; those for which Done is true stand and need not be
	// asked for again. No texts give no results and no error.
	//
	// ctx bounds the call; embedders have no time limit of their own.
	Embed(ctx context.Context, texts []string) ([]Result, error)
	// Model names the model and its version: vectors of the same model and settings can be compared. Never empty, never
	// changes.
	Model() string
	// Dimensions is the length of every vector. It may be 0 until the first call of Embed or Canary has succeeded, and
	// does not change after that.
	Dimensions() int
	// Settings names everything beside model and text that shapes a vector, for the key of a cache (rag.CacheKey). Never
	// changes.
	Settings() string
	// Paid reports whether a vector is worth keeping: false where computing it is cheaper than looking it up.
	Paid() bool
	// Canary embeds known-good texts: nil means that the embedder works. Its error is one as of Embed.
	Canary(ctx context.Context) error
}

// Result is what became of one text: exactly one of Vector and Err is set, once Done.
type Result struct {
	// Vector has passed Check.
	Vector []float32
	// Err is nil or an *Error of class message (this text can never be embedded) or transient.
	Err error
}

// Done reports whether the text has its result.
func (r Result) Done() bool { return r.Vector != nil || r.Err != nil }
