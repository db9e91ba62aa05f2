package weaviate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weaviate/weaviate/entities/models"
	pb "github.com/weaviate/weaviate/grpc/generated/protocol/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

// fake answers as a server does, as far as opening a store and writing go, and as it is told for batches.
type fake struct {
	pb.UnimplementedWeaviateServer
	version string

	mu            sync.Mutex
	classes       map[string]*models.Class
	batch         func(w http.ResponseWriter, objects []json.RawMessage) // nil: all succeed
	authorization []string                                               // what REST and gRPC were sent
	writes        [][]json.RawMessage
	deleted       []time.Time
	finds         bool // searches find whatever was written
	count         int  // how many objects it says that it holds
	refuses       bool // deletions by key are answered with an error
}

func newFake() *fake { return &fake{version: "1.35.2", classes: make(map[string]*models.Class)} }

// answerBatches says how batches are answered from now on; nil: all succeed.
func (f *fake) answerBatches(batch func(w http.ResponseWriter, objects []json.RawMessage)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.batch = batch
}

// seen is what was deleted and written so far.
func (f *fake) seen() ([]time.Time, [][]json.RawMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.deleted), slices.Clone(f.writes)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.authorization = append(f.authorization, r.Header.Get("Authorization"))
	body, _ := io.ReadAll(r.Body)
	switch name, isClass := strings.CutPrefix(r.URL.Path, "/v1/schema/"); {
	case r.URL.Path == "/v1/meta":
		answer(w, map[string]string{"version": f.version})
	case isClass && f.classes[strings.TrimSuffix(name, "/shards")] != nil && strings.HasSuffix(name, "/shards"):
		answer(w, []any{})
	case isClass && f.classes[strings.TrimSuffix(name, "/properties")] != nil && strings.HasSuffix(name, "/properties"):
		class, property := f.classes[strings.TrimSuffix(name, "/properties")], &models.Property{}
		if err := json.Unmarshal(body, property); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		class.Properties = append(class.Properties, property)
		answer(w, property)
	case isClass && f.classes[name] != nil:
		answer(w, f.classes[name])
	case isClass:
		http.Error(w, "{}", http.StatusNotFound)
	case r.URL.Path == "/v1/schema":
		class := &models.Class{}
		if err := json.Unmarshal(body, class); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		f.classes[class.Class] = class
		answer(w, class)
	case r.URL.Path == "/v1/batch/objects" && r.Method == http.MethodPost:
		var request struct{ Objects []json.RawMessage }
		if err := json.Unmarshal(body, &request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		f.writes = append(f.writes, request.Objects)
		if f.batch != nil {
			f.batch(w, request.Objects)
			return
		}
		answer(w, succeeded(len(request.Objects)))
	case r.URL.Path == "/v1/batch/objects" && r.Method == http.MethodDelete:
		f.deleted = append(f.deleted, time.Now())
		answer(w, map[string]any{"results": map[string]int{"limit": 10000}})
	case strings.HasPrefix(r.URL.Path, "/v1/objects/") && r.Method == http.MethodDelete:
		f.deleted = append(f.deleted, time.Now())
		if f.refuses {
			http.Error(w, "{}", http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNotFound) // nothing is there
	case r.URL.Path == "/v1/graphql" && bytes.Contains(body, []byte("Aggregate")):
		counts := map[string]any{}
		for name := range f.classes {
			counts[name] = []any{map[string]any{"meta": map[string]int{"count": f.count}}}
		}
		answer(w, map[string]any{"data": map[string]any{"Aggregate": counts}})
	case r.URL.Path == "/v1/graphql":
		answer(w, map[string]any{"data": map[string]any{"Get": f.found()}})
	default:
		http.Error(w, "{}", http.StatusNotImplemented)
	}
}

// found answers every query of a request with all objects that were written.
func (f *fake) found() map[string]any {
	get := map[string]any{}
	if !f.finds {
		return get
	}
	var hits []any
	for _, write := range f.writes {
		for _, raw := range write {
			var o struct{ ID string }
			if json.Unmarshal(raw, &o) == nil {
				hits = append(hits, map[string]any{"_additional": map[string]any{"id": o.ID, "distance": 0}})
			}
		}
	}
	for i := range 2 * readBatch {
		get[fmt.Sprintf("q%d", i)] = hits
	}
	return get
}

func (f *fake) BatchObjects(ctx context.Context, r *pb.BatchObjectsRequest) (*pb.BatchObjectsReply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	headers, _ := metadata.FromIncomingContext(ctx)
	f.authorization = append(f.authorization, headers.Get("authorization")...)
	return &pb.BatchObjectsReply{}, nil
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// succeeded are the results of n objects.
func succeeded(n int) []any {
	return slices.Repeat([]any{map[string]any{"result": map[string]any{"status": "SUCCESS"}}}, n)
}

func openFake(t *testing.T, f *fake, o Options) *Store {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	o.URL = server.URL
	return openStore(t, o)
}

func objects(n int) []sinks.Object {
	out := make([]sinks.Object, n)
	for i := range out {
		vector := make([]float32, testDimensions)
		vector[i%testDimensions] = 1
		out[i] = sinks.Object{ID: rag.ChunkID("", "d", rag.Revision{Version: 1}, i).String(), Vector: vector, Chunk: rag.Chunk{
			Subject: rag.Subject{DocumentID: "d", Revision: rag.Revision{Version: 1}}, Index: i, Count: n, Text: "text",
		}}
	}
	return out
}

// Every answer that a server or something on the way may give to a batch of three, and what it means.
func TestAnswersToABatch(t *testing.T) {
	raw := func(status int, body string, headers ...string) func(http.ResponseWriter, []json.RawMessage) {
		return func(w http.ResponseWriter, _ []json.RawMessage) {
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	item := func(result string) string {
		return `[{"result":{"status":"SUCCESS"}},{"result":` + result + `},{"result":{"status":"SUCCESS"}}]`
	}
	failed := func(message string) string {
		return item(`{"status":"FAILED","errors":{"error":[{"message":"` + message + `"}]}}`)
	}
	all := func(o sinks.Outcome) []sinks.Outcome { return []sinks.Outcome{o, o, o} }
	second := func(o sinks.Outcome) []sinks.Outcome { return []sinks.Outcome{sinks.Done, o, sinks.Done} }
	for name, c := range map[string]struct {
		batch    func(http.ResponseWriter, []json.RawMessage)
		want     []sinks.Outcome
		suspects int
	}{
		"success":       {nil, all(sinks.Done), 0},
		"one failed":    {raw(200, failed("cannot do that")), second(sinks.Transient), 1},
		"one read-only": {raw(200, failed("put object: store is read-only")), second(sinks.Outage), 1},
		// The error of a whole shard stands at its first object, and the others are a success that never was.
		"one read-only, the others are not found": {raw(200, failed("put object: store is read-only")), all(sinks.Outage), 3},
		"one failed, the others are not found":    {raw(200, failed("cannot do that")), []sinks.Outcome{sinks.Ambiguous, sinks.Transient, sinks.Ambiguous}, 3},
		"one without memory":                      {raw(200, failed("memory pressure: cannot process insert: not enough memory")), second(sinks.Outage), 1},
		"one without replicas":                    {raw(200, failed("cannot achieve consistency level \\\"QUORUM\\\"")), second(sinks.Outage), 1},
		"one too late":                            {raw(200, failed("context deadline exceeded")), second(sinks.Outage), 1},
		"one without a reason":                    {raw(200, item(`{"status":"FAILED"}`)), second(sinks.Transient), 1},
		"one without a status":                    {raw(200, item(`{}`)), second(sinks.Transient), 1},
		"one without a result":                    {raw(200, item(`null`)), second(sinks.Transient), 1},
		"error beside success":                    {raw(200, item(`{"status":"SUCCESS","errors":{"error":[{"message":"x"}]}}`)), second(sinks.Transient), 1},
		"null error":                              {raw(200, item(`{"status":"FAILED","errors":{"error":[null]}}`)), second(sinks.Transient), 1},
		"short":                                   {raw(200, `[{"result":{"status":"SUCCESS"}}]`), all(sinks.Ambiguous), 3},
		"empty":                                   {raw(200, ``), all(sinks.Ambiguous), 3},
		"no JSON":                                 {raw(200, `<html>`), all(sinks.Ambiguous), 3},
		"another JSON":                            {raw(200, `{}`), all(sinks.Ambiguous), 3},
		"unauthorized":                            {raw(401, `{}`), all(sinks.Outage), 0},
		"forbidden":                               {raw(403, `{}`), all(sinks.Outage), 0},
		"collection gone":                         {raw(404, `{}`), all(sinks.Outage), 0},
		"unprocessable":                           {raw(422, `{}`), all(sinks.Transient), 0},
		"too many":                                {raw(429, `{}`, "Retry-After", "7"), all(sinks.Outage), 0},
		"server error":                            {raw(500, `{}`), all(sinks.Outage), 3},
		"unavailable":                             {raw(503, `{}`), all(sinks.Outage), 3},
		"cut off":                                 {raw(200, `[`, "Content-Length", "1000"), all(sinks.Ambiguous), 3},
		"connection closed":                       {func(http.ResponseWriter, []json.RawMessage) { panic(http.ErrAbortHandler) }, all(sinks.Ambiguous), 3},
		"too large for all":                       {raw(413, `{}`), all(sinks.Transient), 0},
		"too large for several": {func(w http.ResponseWriter, o []json.RawMessage) {
			if len(o) > 1 {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				return
			}
			answer(w, succeeded(1))
		}, all(sinks.Done), 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.finds = !strings.HasSuffix(name, "not found")
			s := openFake(t, f, Options{})
			f.batch = c.batch
			results := s.Upsert(context.Background(), objects(3), nil)
			for i, r := range results {
				if r.Outcome != c.want[i] || (r.Err == nil) != (r.Outcome == sinks.Done) {
					t.Errorf("object %d is %s, want %s: %v", i, r.Outcome, c.want[i], r.Err)
				}
			}
			if n := len(s.suspects.byID); n != c.suspects {
				t.Errorf("%d suspects, want %d", n, c.suspects)
			}
			if name == "too many" && sinks.RetryAfter(results[0].Err) != 7*time.Second {
				t.Errorf("RetryAfter = %s, want 7s", sinks.RetryAfter(results[0].Err))
			}
		})
	}
}

// Nothing was sent to a server that is not there: an outage, which leaves nothing to repair.
func TestNoServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := listener.Addr().String()
	listener.Close()
	for _, grpcAddress := range []string{"", dead} {
		f := newFake()
		server := httptest.NewServer(f)
		s := openStore(t, Options{URL: server.URL, GRPC: grpcAddress})
		if grpcAddress == "" {
			server.Close()
			s.http.close() // a connection that is kept from before would leave the outcome open
		} else {
			t.Cleanup(server.Close)
		}
		for _, r := range s.Upsert(context.Background(), objects(2), nil) {
			if r.Outcome != sinks.Outage || r.Err == nil {
				t.Errorf("gRPC %q: %s: %v, want an outage", grpcAddress, r.Outcome, r.Err)
			}
		}
		if len(s.suspects.byID) != 0 {
			t.Errorf("gRPC %q: objects that were never sent are suspects", grpcAddress)
		}
		if err := s.Canary(context.Background()); err == nil {
			t.Error("the canary lives without a server")
		}
	}
	if _, err := Open(context.Background(), Options{URL: "http://" + dead, Model: "m", Dimensions: 3}); err == nil {
		t.Error("a store without a server opens")
	}
}

// A write that did not end well is repaired when it cannot be running any more, whether the caller asks for it or not, and an
// object that its vector does not find afterwards stays to be repaired.
func TestSuspectsAreRepaired(t *testing.T) {
	f := newFake()
	s := openFake(t, f, Options{})
	f.answerBatches(func(http.ResponseWriter, []json.RawMessage) { panic(http.ErrAbortHandler) })
	for _, r := range s.Upsert(context.Background(), objects(2), nil) {
		if r.Outcome != sinks.Ambiguous {
			t.Fatalf("a lost answer is %s", r.Outcome)
		}
	}
	lost := time.Now()
	f.answerBatches(nil)
	results := s.Upsert(context.Background(), objects(3), nil)
	deleted, writes := f.seen()
	if len(deleted) != 2 || deleted[0].Before(lost.Add(testSettle*9/10)) {
		t.Errorf("deleted at %v, want each once, %s after %s", deleted, testSettle, lost)
	}
	if len(writes) != 3 || len(writes[1]) != 1 || len(writes[2]) != 2 {
		t.Errorf("%d writes, want the new object first and the two suspects together", len(writes))
	}
	// The fake finds nothing.
	if results[0].Outcome != sinks.Ambiguous || results[1].Outcome != sinks.Ambiguous || results[2].Outcome != sinks.Done {
		t.Errorf("results: %v", results)
	}
	if !s.suspects.has(objects(1)[0].ID) {
		t.Error("an object that was not found is no suspect any more")
	}
	if at := s.suspects.settled(objects(1)[0].ID, s.settle); at.After(lost) {
		t.Errorf("a write that was answered settles at %s, %s after the last one without an answer", at, at.Sub(lost))
	}
	f.answerBatches(func(http.ResponseWriter, []json.RawMessage) { panic(http.ErrAbortHandler) })
	s.Upsert(context.Background(), objects(1), nil)
	ctx, cancel := context.WithTimeout(context.Background(), testSettle/10)
	defer cancel()
	if r := s.Upsert(ctx, objects(1), nil)[0]; r.Outcome != sinks.Transient {
		t.Errorf("a wait that is given up is %s: %v", r.Outcome, r.Err)
	}
	f.answerBatches(nil)
	before, _ := f.seen()
	if r := s.Remove(context.Background(), "d", rag.Removal{Revision: rag.Revision{Version: 2}}); r.Outcome != sinks.Done {
		t.Errorf("the removal is %s: %v", r.Outcome, r.Err)
	}
	if deleted, _ := f.seen(); len(deleted)-len(before) != 3 { // two suspects, and what a filter finds
		t.Errorf("the removal deletes %d times", len(deleted)-len(before))
	}
}

// What was removed is no suspect any more, once none of its writes can be running: the next removal of the document would delete
// it again, one by one.
func TestRemovedSuspectsAreForgotten(t *testing.T) {
	f := newFake()
	s := openFake(t, f, Options{})
	all, below := objects(3), rag.Removal{Revision: rag.Revision{Version: 2}}
	s.suspects.add(&all[0], time.Time{})
	s.suspects.add(&all[1], time.Now().Add(-time.Hour))
	s.suspects.add(&all[2], time.Now().Add(time.Hour))
	for _, want := range []int{4, 2} { // by their keys, and by the filter
		before, _ := f.seen()
		if r := s.Remove(context.Background(), "d", below); r.Outcome != sinks.Done {
			t.Fatalf("the removal is %s: %v", r.Outcome, r.Err)
		}
		if deleted, _ := f.seen(); len(deleted)-len(before) != want {
			t.Errorf("%d deletions, want %d", len(deleted)-len(before), want)
		}
	}
	if s.suspects.has(all[0].ID) || s.suspects.has(all[1].ID) || !s.suspects.has(all[2].ID) {
		t.Error("the wrong ones are suspects still")
	}
}

// A batch that runs is not given up with its caller; the next one is not begun.
func TestCancelBetweenBatches(t *testing.T) {
	f := newFake()
	s := openFake(t, f, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	f.batch = func(w http.ResponseWriter, o []json.RawMessage) {
		cancel()
		answer(w, succeeded(len(o)))
	}
	results := s.Upsert(ctx, objects(maxBatch+5), nil)
	if results[0].Outcome != sinks.Done || results[maxBatch-1].Outcome != sinks.Done {
		t.Errorf("the batch that ran: %v", results[0])
	}
	if r := results[maxBatch]; r.Outcome != sinks.Transient || !errors.Is(r.Err, context.Canceled) {
		t.Errorf("the batch after it: %v", r)
	}
}

func TestBatchesAreBounded(t *testing.T) {
	f := newFake()
	s := openFake(t, f, Options{})
	big := objects(12)
	for i := range big {
		big[i].Chunk.Text = strings.Repeat("x", 1<<20)
	}
	for _, r := range s.Upsert(context.Background(), append(big, objects(250)[12:]...), nil) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	total := 0
	for _, w := range f.writes {
		bytes := 0
		for _, o := range w {
			bytes += len(o)
		}
		if len(w) > maxBatch || bytes > maxBatchBytes {
			t.Errorf("a request of %d objects and %d bytes", len(w), bytes)
		}
		total += len(w)
	}
	if total != 250 {
		t.Errorf("%d objects were sent, want 250", total)
	}
}

// The key goes with every request, and certificates are verified, by gRPC too.
func TestKeyAndCertificates(t *testing.T) {
	f := newFake()
	server := httptest.NewTLSServer(f)
	defer server.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	grpcServer := grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&server.TLS.Certificates[0])))
	pb.RegisterWeaviateServer(grpcServer, f)
	var serving sync.WaitGroup
	serving.Go(func() { _ = grpcServer.Serve(listener) })
	defer serving.Wait()
	defer grpcServer.Stop()

	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	o := Options{
		URL: server.URL, GRPC: listener.Addr().String(), APIKey: "secret", Model: "test", Dimensions: testDimensions,
		TLS: &tls.Config{RootCAs: roots},
	}
	s := openStore(t, o)
	for _, r := range s.Upsert(context.Background(), objects(2), nil) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	for _, a := range f.authorization {
		if a != "Bearer secret" {
			t.Errorf("a request has the authorization %q", a)
		}
	}
	if len(f.authorization) < 4 {
		t.Errorf("%d requests", len(f.authorization))
	}

	var certificate *tls.CertificateVerificationError
	o.TLS = nil
	if _, err := Open(context.Background(), o); !errors.As(err, &certificate) {
		t.Errorf("REST with an unknown certificate: %v", err)
	}
	untrusted, err := dialGRPC(o.GRPC, &tls.Config{MinVersion: tls.VersionTLS12}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer untrusted.close()
	if _, err := untrusted.send(context.Background(), nil, "ONE"); !errors.Is(err, errNotSent) {
		t.Errorf("gRPC with an unknown certificate: %v", err)
	}
}
