package kafka

import (
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/IBM/sarama"
)

// PartitionOf is the home partition of a key among n > 0 partitions, as Java's clients choose it. goka processors and
// views (Hasher), and every producer made from a Config, agree with it.
func PartitionOf(key []byte, n int32) int32 { return int32(murmur2(key)&0x7fffffff) % n }

// Hasher is the hash for goka's WithHasher, WithViewHasher and WithEmitterHasher. Its sums have 31 bits, so that goka's
// absolute value cannot overflow: the default hash gives the smallest integer for some keys, which is its own negative.
func Hasher() func() hash.Hash32 { return func() hash.Hash32 { return &hasher{} } }

// hasher keeps what is written: murmur2 needs the length before the first byte.
type hasher struct{ b []byte }

func (h *hasher) Write(p []byte) (int, error) { h.b = append(h.b, p...); return len(p), nil }
func (h *hasher) Reset()                      { h.b = h.b[:0] }
func (h *hasher) Size() int                   { return 4 }
func (h *hasher) BlockSize() int              { return 4 }
func (h *hasher) Sum32() uint32               { return murmur2(h.b) & 0x7fffffff }
func (h *hasher) Sum(in []byte) []byte        { return binary.BigEndian.AppendUint32(in, h.Sum32()) }

// murmur2 is the hash of Java's Utils.murmur2. sarama has the same but keeps it to itself.
func murmur2(b []byte) uint32 {
	const (
		seed uint32 = 0x9747b28c
		m    uint32 = 0x5bd1e995
	)
	h := seed ^ uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := binary.LittleEndian.Uint32(b)
		k *= m
		k ^= k >> 24
		k *= m
		h *= m
		h ^= k
	}
	switch len(b) {
	case 3:
		h ^= uint32(b[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(b[1]) << 8
		fallthrough
	case 1:
		h ^= uint32(b[0])
		h *= m
	}
	h ^= h >> 13
	h *= m
	h ^= h >> 15
	return h
}

// NewPartitioner is the sarama partitioner of every producer: a partition that Producer.SendTo named, else the home of
// the key, else (a null key) one partition after the other.
func NewPartitioner(string) sarama.Partitioner { return &partitioner{} }

type partitioner struct{ next int32 }

// explicit is what the metadata of a message that has its partition already implements.
type explicit interface{ partition() (int32, bool) }

func (p *partitioner) Partition(m *sarama.ProducerMessage, n int32) (int32, error) {
	if n <= 0 {
		return -1, fmt.Errorf("topic %s has no partitions", m.Topic)
	}
	if e, ok := m.Metadata.(explicit); ok {
		if to, ok := e.partition(); ok {
			if to < 0 || to >= n {
				return -1, fmt.Errorf("topic %s has no partition %d but %d of them", m.Topic, to, n)
			}
			return to, nil
		}
	}
	if m.Key == nil {
		p.next = (p.next + 1) % n
		return p.next, nil
	}
	key, err := m.Key.Encode()
	if err != nil {
		return -1, err
	}
	return PartitionOf(key, n), nil
}

// RequiresConsistency makes sarama offer all partitions, not only those that can be written to at the moment: a key must
// not move because a leader is away.
func (p *partitioner) RequiresConsistency() bool { return true }
