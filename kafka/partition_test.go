package kafka_test

import (
	"bytes"
	"hash/fnv"
	"math"
	"testing"

	"github.com/IBM/sarama"
	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/kafka"
)

// The sums are those of Kafka's own UtilsTest.testMurmur2, masked to 31 bits.
func TestHasherAgreesWithJava(t *testing.T) {
	for key, want := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		h := kafka.Hasher()()
		_, _ = h.Write([]byte(key))
		if got := h.Sum32(); got != uint32(want)&0x7fffffff {
			t.Errorf("hash of %q is %d, want %d", key, got, uint32(want)&0x7fffffff)
		}
	}
}

// The partitions among 1,000 that kafka-python's tests took from the Java client; they cover every length of the tail.
func TestPartitionOfAgreesWithPython(t *testing.T) {
	for key, want := range map[string]int32{"": 681, "a": 524, "ab": 434, "abc": 107, "123456789": 566, "\x00 ": 742} {
		if got := kafka.PartitionOf([]byte(key), 1000); got != want {
			t.Errorf("partition of %q is %d, want %d", key, got, want)
		}
	}
}

func TestPartitionerAgreesWithSaramaMurmur2(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "key")
		n := rapid.Int32Range(1, 1000).Draw(t, "n")
		m := &sarama.ProducerMessage{Topic: "t", Key: sarama.ByteEncoder(key)}
		want, err := sarama.NewMurmur2Partitioner("t").Partition(m, n)
		if err != nil {
			t.Fatal(err)
		}
		got, err := kafka.NewPartitioner("t").Partition(m, n)
		if err != nil {
			t.Fatal(err)
		}
		if got != want || got != kafka.PartitionOf(key, n) {
			t.Fatalf("partition of %q among %d is %d and %d, sarama says %d", key, n, got, kafka.PartitionOf(key, n), want)
		}
		if g := gokaPartition(key, n); g != want {
			t.Fatalf("goka's arithmetic gives %d for %q among %d, want %d", g, key, n, want)
		}
	})
}

// gokaPartition is how goka's processors and views come from a sum to a partition.
func gokaPartition(key []byte, n int32) int32 {
	h := kafka.Hasher()()
	_, _ = h.Write(key)
	sum := int32(h.Sum32())
	if sum < 0 {
		sum = -sum
	}
	return sum % n
}

// goka's default hash of this key is the smallest integer, whose absolute value is negative: a view panics on it.
func TestHasherHasNoKeyWithoutPartition(t *testing.T) {
	key := []byte("I8KPoca")
	f := fnv.New32a()
	_, _ = f.Write(key)
	if int32(f.Sum32()) != math.MinInt32 {
		t.Fatalf("%q is not the key that breaks the default hash", key)
	}
	for n := int32(1); n < 100; n++ {
		if p := gokaPartition(key, n); p < 0 || p >= n {
			t.Fatalf("partition %d among %d", p, n)
		}
	}
}

func TestHasherCanBeUsedAgain(t *testing.T) {
	h := kafka.Hasher()()
	_, _ = h.Write([]byte("ab"))
	_, _ = h.Write([]byte("c"))
	first := h.Sum(nil)
	h.Reset()
	_, _ = h.Write([]byte("abc"))
	if !bytes.Equal(first, h.Sum(nil)) || h.Size() != len(first) {
		t.Fatalf("sums %x and %x", first, h.Sum(nil))
	}
}

func TestPartitionerSpreadsNullKeys(t *testing.T) {
	p := kafka.NewPartitioner("t")
	seen := make(map[int32]bool)
	for range 8 {
		n, err := p.Partition(&sarama.ProducerMessage{Topic: "t"}, 4)
		if err != nil {
			t.Fatal(err)
		}
		seen[n] = true
	}
	if len(seen) != 4 {
		t.Fatalf("partitions %v", seen)
	}
	if _, err := p.Partition(&sarama.ProducerMessage{Topic: "t"}, 0); err == nil {
		t.Fatal("a topic without partitions was accepted")
	}
}
