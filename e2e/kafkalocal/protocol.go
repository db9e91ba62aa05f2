package kafkalocal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// What a coordinator is asked for.
const (
	ofGroup       = 0
	ofTransaction = 1
)

const (
	requestTimeout = 2 * time.Second
	maxResponse    = 1 << 20
)

// Brokers asks the broker at addr, with a Metadata request, which brokers are alive.
func Brokers(ctx context.Context, addr string) ([]int32, error) {
	const metadata, version = 3, 4
	r, err := roundTrip(ctx, addr, metadata, version, []byte{
		0, 0, 0, 0, // no topics
		0, // do not create topics
	})
	if err != nil {
		return nil, err
	}
	r.int32() // throttle time
	var ids []int32
	for n := r.int32(); n > 0 && !r.short; n-- {
		ids = append(ids, r.int32())
		r.string() // host
		r.int32()  // port
		r.string() // rack
	}
	if r.short {
		return nil, errors.New("a Metadata response that ends early")
	}
	return ids, nil
}

// findCoordinator asks for the coordinator of a group or of a transactional id. The first time, that makes the cluster
// create its topic of offsets or of transactions.
func findCoordinator(ctx context.Context, addr string, kind byte) error {
	const findCoordinator, version = 10, 1
	r, err := roundTrip(ctx, addr, findCoordinator, version, []byte{
		0, 1, 'k', // the key
		kind,
	})
	if err != nil {
		return err
	}
	r.int32() // throttle time
	if code := r.int16(); code != 0 || r.short {
		return fmt.Errorf("no coordinator yet: error code %d", code)
	}
	return nil
}

// roundTrip sends one request and returns what follows the header of its response. Both headers are those of before the
// flexible versions, so the version has to be old enough.
func roundTrip(ctx context.Context, addr string, api, version int16, body []byte) (*response, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp4", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	request := binary.BigEndian.AppendUint32(nil, uint32(10+len(body)))
	request = binary.BigEndian.AppendUint16(request, uint16(api))
	request = binary.BigEndian.AppendUint16(request, uint16(version))
	request = append(request, 0, 0, 0, 1) // correlation id
	request = append(request, 0xff, 0xff) // no client id
	if _, err := conn.Write(append(request, body...)); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxResponse {
		return nil, fmt.Errorf("not Kafka: a response of %d bytes", n)
	}
	r := &response{b: make([]byte, n)}
	if _, err := io.ReadFull(conn, r.b); err != nil {
		return nil, err
	}
	r.int32() // correlation id
	return r, nil
}

// response gives the values of a response, one after the other; past its end they are zero, and short is set.
type response struct {
	b     []byte
	short bool
}

func (r *response) take(n int) []byte {
	if r.short = r.short || n > len(r.b); r.short {
		return make([]byte, min(n, 4))
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *response) int16() int16   { return int16(binary.BigEndian.Uint16(r.take(2))) }
func (r *response) int32() int32   { return int32(binary.BigEndian.Uint32(r.take(4))) }
func (r *response) string() string { return string(r.take(max(0, int(r.int16())))) } // -1: null
