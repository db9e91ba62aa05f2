package weaviate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/weaviate/weaviate-go-client/v4/weaviate/db"
	grpcbatch "github.com/weaviate/weaviate-go-client/v4/weaviate/grpc/batch"
	"github.com/weaviate/weaviate/entities/models"
	pb "github.com/weaviate/weaviate/grpc/generated/protocol/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

const (
	// connectTimeout is how long a batch waits for a connection before it is an outage.
	connectTimeout = 5 * time.Second
	// maxReconnectDelay is how long a server that is back may have to wait for us; gRPC's own default is two minutes.
	maxReconnectDelay = 3 * time.Second
)

// grpcBatches sends batches by gRPC, over a connection of its own.
type grpcBatches struct {
	conn   *grpc.ClientConn
	client pb.WeaviateClient
	encode grpcbatch.Batch
	token  func(context.Context) (string, error) // nil: nothing is asked of us
}

func dialGRPC(address string, tlsConfig *tls.Config, token func(context.Context) (string, error)) (*grpcBatches, error) {
	secure := insecure.NewCredentials()
	if tlsConfig != nil {
		secure = credentials.NewTLS(tlsConfig)
	}
	reconnect := backoff.DefaultConfig
	reconnect.MaxDelay = maxReconnectDelay
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(secure),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: connectTimeout}))
	if err != nil {
		return nil, fmt.Errorf("gRPC %s: %w", address, err)
	}
	version := db.NewVersionProvider(func() string { return oldestVersion })
	return &grpcBatches{
		conn:   conn,
		client: pb.NewWeaviateClient(conn),
		encode: grpcbatch.New(db.NewGRPCVersionSupport(version)),
		token:  token,
	}, nil
}

func (g *grpcBatches) close() error { return g.conn.Close() }

// send writes a batch and gives the answer in the form of REST.
func (g *grpcBatches) send(ctx context.Context, objects []*models.Object, level string) ([]models.ObjectsGetResponse, error) {
	encoded, err := g.encode.GetBatchObjects(objects)
	if err != nil {
		return nil, errors.Join(errNotSent, err)
	}
	if err := g.ready(ctx); err != nil {
		return nil, err
	}
	if g.token != nil {
		text, err := bearer(ctx, g.token)
		if err != nil {
			return nil, err
		}
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", text)
	}
	reply, err := g.client.BatchObjects(ctx,
		&pb.BatchObjectsRequest{Objects: encoded, ConsistencyLevel: g.encode.GetConsistencyLevel(level)})
	if err != nil {
		return nil, err
	}
	for _, e := range reply.GetErrors() {
		if int(e.GetIndex()) < 0 || int(e.GetIndex()) >= len(objects) {
			return nil, fmt.Errorf("the answer names object %d of %d: %s", e.GetIndex(), len(objects), e.GetError())
		}
	}
	return g.encode.ParseReply(reply, objects), nil
}

// ready waits for the connection. Without one nothing is sent, which is known for certain here, while an error of a call
// does not tell.
func (g *grpcBatches) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	for {
		state := g.conn.GetState()
		switch state {
		case connectivity.Ready:
			return nil
		case connectivity.Idle:
			g.conn.Connect()
		case connectivity.TransientFailure, connectivity.Shutdown:
			return fmt.Errorf("%w: gRPC connection to %s: %s", errNotSent, g.conn.Target(), state)
		}
		if !g.conn.WaitForStateChange(ctx, state) {
			return fmt.Errorf("%w: no gRPC connection to %s: %w", errNotSent, g.conn.Target(), ctx.Err())
		}
	}
}
