// Package pdf reads the text of PDF documents with PDFium, which runs as WebAssembly: in a memory of its own, without files.
package pdf

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// memoryPages bounds the memory of one document in PDFium: 4,096 pages of 64 KiB, 256 MiB. The allocator keeps it, not the
// runtime, which would refuse more without anybody hearing of it.
const memoryPages = 4096

// DefaultInstances is how many documents are read at a time.
const DefaultInstances = 2

// compilationWorkers is how many goroutines compile PDFium.
const compilationWorkers = 2

// ErrNotReady says that PDFium was not compiled before the context ended. It is no fault of the document.
var ErrNotReady = errors.New("PDFium is still being compiled")

// Options of an Engine.
type Options struct {
	// CacheDir is a folder for what was compiled; it is made if it is missing, and processes may share it. With it PDFium is
	// ready in a fraction of a second, without it, "", after some 10 seconds of each process.
	CacheDir string
	// Instances is how many documents are read at a time, each in at most 256 MiB; 0 means DefaultInstances.
	Instances int
}

// Engine compiles PDFium when the first document comes, and reads each document in a fresh instance of it: a document that
// breaks its instance harms no other. It is safe for concurrent use. Close must be called.
type Engine struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex
	compiled chan struct{} // nil until the first document; closed when pool or err is set
	pool     pdfium.Pool
	cache    wazero.CompilationCache
	err      error
	closed   bool
	slots    chan struct{}

	starting sync.Mutex // so that a memory is known to be that of the instance being made
	memories allocator
}

// New returns an Engine. Nothing is compiled yet.
func New(o Options) *Engine {
	if o.Instances <= 0 {
		o.Instances = DefaultInstances
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Engine{o: o, ctx: ctx, cancel: cancel, slots: make(chan struct{}, o.Instances)}
}

// Ready waits until PDFium is compiled. It returns ErrNotReady when ctx ends before.
func (e *Engine) Ready(ctx context.Context) error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return errors.New("pdf: the engine is closed")
	}
	if e.compiled == nil {
		e.compiled = make(chan struct{})
		go e.compile()
	}
	compiled := e.compiled
	e.mu.Unlock()
	select {
	case <-compiled:
		return e.err
	case <-ctx.Done():
		return fmt.Errorf("pdf: %w", ErrNotReady)
	}
}

func (e *Engine) compile() {
	defer close(e.compiled)
	config := wazero.NewRuntimeConfigCompiler().
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling).
		WithCloseOnContextDone(true)
	if e.o.CacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(e.o.CacheDir)
		if err != nil {
			e.err = fmt.Errorf("pdf: the cache folder: %w", err)
			return
		}
		e.cache = cache
		config = config.WithCompilationCache(cache)
	}
	e.pool, e.err = webassembly.Init(webassembly.Config{
		Context:  experimental.WithMemoryAllocator(experimental.WithCompilationWorkers(e.ctx, compilationWorkers), &e.memories),
		MaxTotal: e.o.Instances, RuntimeConfig: config,
		FSConfig: wazero.NewFSConfig(), Stdout: io.Discard, Stderr: io.Discard, RandomSource: rand.Reader,
	})
	if e.err != nil {
		e.err = fmt.Errorf("pdf: start PDFium: %w", e.err)
	}
}

// Close ends the Engine and waits for what it has started. Nothing may be read any more.
func (e *Engine) Close() error {
	e.mu.Lock()
	closed, compiled := e.closed, e.compiled
	e.closed = true
	e.mu.Unlock()
	if closed || compiled == nil {
		e.cancel()
		return nil
	}
	<-compiled
	var err error
	if e.pool != nil {
		err = e.pool.Close()
	}
	if e.cache != nil {
		err = errors.Join(err, e.cache.Close(context.Background()))
	}
	e.cancel()
	if err != nil {
		return fmt.Errorf("pdf: %w", err)
	}
	return nil
}

// with calls use with a fresh instance and its memory. When ctx ends, what the instance does ends too.
func (e *Engine) with(ctx context.Context, use func(pdfium.Pdfium, *memory) error) error {
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	instance, mem, err := e.start(ctx)
	defer mem.release() // behind everything that the instance does
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("pdf: start an instance of PDFium: %w", err)
	}
	killed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(killed)
		_ = instance.Kill() // what it would report is said by ctx
	})
	err = protect(func() error { return use(instance, mem) })
	if !stop() {
		<-killed
		return ctx.Err()
	}
	// An instance that a document has broken cannot be closed in order; it is dropped all the same.
	_ = protect(instance.Close)
	return err
}

// start makes an instance, and returns it with its memory; the memory may be nil.
func (e *Engine) start(ctx context.Context) (pdfium.Pdfium, *memory, error) {
	e.starting.Lock()
	defer e.starting.Unlock()
	instance, err := e.pool.GetInstanceWithContext(ctx)
	return instance, e.memories.take(), err
}

// protect turns a panic of the library into an error: a broken instance makes it panic in odd places.
func protect(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("PDFium crashed: %v", r)
		}
	}()
	return f()
}
