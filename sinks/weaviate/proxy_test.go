package weaviate

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	pb "github.com/weaviate/weaviate/grpc/generated/protocol/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/waymarkhq/waymark/sinks/sinktest"
)

const failedItem = "injected: this object failed"

// proxy stands between a store and a server, for REST and gRPC, and makes the next write meet a fault.
type proxy struct {
	pb.UnimplementedWeaviateServer
	target   string // of REST
	url      string
	grpc     string
	upstream pb.WeaviateClient

	mu    sync.Mutex
	fault *pending
}

// pending is a fault that waits for its write, and then for its release.
type pending struct {
	sinktest.Fault
	met     chan struct{}
	forward func() error // LostLater: sends the write on
}

func newProxy(t testing.TB, s *server) *proxy {
	t.Helper()
	p := &proxy{target: s.url}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	p.url = front.URL

	conn, err := grpc.NewClient(s.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	p.upstream = pb.NewWeaviateClient(conn)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.grpc = listener.Addr().String()
	grpcServer := grpc.NewServer(grpc.MaxRecvMsgSize(64 << 20))
	pb.RegisterWeaviateServer(grpcServer, p)
	var serving sync.WaitGroup
	serving.Go(func() { _ = grpcServer.Serve(listener) })
	t.Cleanup(func() {
		grpcServer.Stop()
		serving.Wait()
	})
	return p
}

// arm makes the next write meet f.
func (p *proxy) arm(t testing.TB, f sinktest.Fault) (release func()) {
	a := &pending{Fault: f, met: make(chan struct{})}
	p.mu.Lock()
	p.fault = a
	p.mu.Unlock()
	return func() {
		if f.Kind != sinktest.LostLater {
			return
		}
		<-a.met
		if err := a.forward(); err != nil {
			t.Errorf("the delayed write: %v", err)
		}
	}
}

func (p *proxy) take() *pending {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.fault
	p.fault = nil
	return a
}

// ServeHTTP forwards a REST request.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	send := func(body []byte) (*forwarded, error) { return p.send(r, body) }
	var fault *pending
	if r.URL.Path == "/v1/batch/objects" {
		fault = p.take()
	}
	if fault != nil {
		switch fault.Kind {
		case sinktest.LostAfter:
			_, _ = send(body)
			panic(http.ErrAbortHandler) // cuts the connection
		case sinktest.LostLater:
			fault.forward = func() error {
				_, err := send(body)
				return err
			}
			close(fault.met)
			panic(http.ErrAbortHandler)
		case sinktest.LostBefore:
			panic(http.ErrAbortHandler)
		case sinktest.FailAll:
			w.Header().Set("Retry-After", "2")
			http.Error(w, "injected: overloaded", http.StatusServiceUnavailable)
			return
		case sinktest.FailItem:
			body = without(body, "objects", fault.Item)
		}
	}
	answer, err := send(body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if fault != nil && fault.Kind == sinktest.FailItem {
		answer.body = withFailed(answer.body, fault.Item)
	}
	w.Header().Set("Content-Type", answer.contentType)
	w.WriteHeader(answer.status)
	_, _ = w.Write(answer.body)
}

// forwarded is the server's answer.
type forwarded struct {
	status      int
	contentType string
	body        []byte
}

// send sends a request on, whatever becomes of the one who asked.
func (p *proxy) send(r *http.Request, body []byte) (*forwarded, error) {
	request, err := http.NewRequest(r.Method, p.target+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = r.Header.Clone()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	reply, err := io.ReadAll(response.Body)
	return &forwarded{response.StatusCode, response.Header.Get("Content-Type"), reply}, err
}

// without takes an element out of a list in a JSON object.
func without(body []byte, field string, item int) []byte {
	var request map[string]json.RawMessage
	var list []json.RawMessage
	if json.Unmarshal(body, &request) != nil || json.Unmarshal(request[field], &list) != nil {
		return body
	}
	request[field], _ = json.Marshal(slices.Delete(list, item, item+1))
	out, _ := json.Marshal(request)
	return out
}

// withFailed puts the result of an object that has failed into an answer.
func withFailed(reply []byte, item int) []byte {
	var list []json.RawMessage
	if json.Unmarshal(reply, &list) != nil {
		return reply
	}
	failed := json.RawMessage(`{"result": {"status": "FAILED", "errors": {"error": [{"message": "` + failedItem + `"}]}}}`)
	out, _ := json.Marshal(slices.Insert(list, item, failed))
	return out
}

// BatchObjects forwards a gRPC batch.
func (p *proxy) BatchObjects(ctx context.Context, r *pb.BatchObjectsRequest) (*pb.BatchObjectsReply, error) {
	headers, _ := metadata.FromIncomingContext(ctx)
	send := func() (*pb.BatchObjectsReply, error) {
		return p.upstream.BatchObjects(metadata.NewOutgoingContext(context.WithoutCancel(ctx), headers), r)
	}
	lost := status.Error(codes.Unavailable, "injected: the connection broke")
	fault := p.take()
	if fault == nil {
		return send()
	}
	switch fault.Kind {
	case sinktest.LostBefore:
		return nil, lost
	case sinktest.LostAfter:
		_, _ = send()
		return nil, lost
	case sinktest.LostLater:
		fault.forward = func() error {
			_, err := send()
			return err
		}
		close(fault.met)
		return nil, lost
	case sinktest.FailAll:
		reply := &pb.BatchObjectsReply{}
		for i := range r.Objects {
			reply.Errors = append(reply.Errors, &pb.BatchObjectsReply_BatchError{Index: int32(i), Error: "injected: store is read-only"})
		}
		return reply, nil
	}
	r.Objects = slices.Delete(r.Objects, fault.Item, fault.Item+1)
	reply, err := send()
	if err != nil {
		return nil, err
	}
	for _, e := range reply.Errors {
		if int(e.Index) >= fault.Item {
			e.Index++
		}
	}
	reply.Errors = append(reply.Errors, &pb.BatchObjectsReply_BatchError{Index: int32(fault.Item), Error: failedItem})
	return reply, nil
}
