package streams

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/waymarkhq/waymark/e2e/kafkalocal"
	"github.com/waymarkhq/waymark/kafka"
)

const (
	nativeVariable   = "E2E_NATIVE"     // as for the other tests on real brokers
	messagesVariable = "BENCH_MESSAGES" // 300,000 unless set

	partitions = 12
	keysPer    = 3 // messages of each key
	valueBytes = 1 << 10
)

func TestMain(m *testing.M) {
	if name := os.Getenv(contenderVariable); name != "" {
		os.Exit(contend(name))
	}
	os.Exit(m.Run())
}

// needBroker starts a real broker for the benchmark.
func needBroker(b *testing.B) *kafkalocal.Cluster {
	b.Helper()
	if os.Getenv(nativeVariable) == "" {
		b.Skip("NOT RUN: " + nativeVariable + " is not set; `make bench-kafka` sets it")
	}
	cache, err := kafkalocal.CacheDir()
	if err != nil {
		b.Fatal(err)
	}
	r, err := kafkalocal.Fetch(b.Context(), cache, kafkalocal.DefaultVersion)
	if err != nil {
		b.Fatal(err)
	}
	c, err := kafkalocal.New(b.Context(), kafkalocal.Options{Release: r, Dir: filepath.Join(b.TempDir(), "kafka"), HeapMB: 1024,
		// The processes of a run join together, as those of a deployment do.
		Props: map[string]string{"group.initial.rebalance.delay.ms": "3000"}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := c.Clean(); err != nil {
			b.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()
	if err := c.Start(ctx); err != nil {
		b.Fatal(err)
	}
	return c
}

// bench is what all runs share.
type bench struct {
	c        *kafkalocal.Cluster
	cfg      kafka.Config
	client   sarama.Client
	messages int
	runs     int
}

func newBench(b *testing.B) *bench {
	b.Helper()
	c := needBroker(b)
	s := &bench{c: c, cfg: kafka.Config{Brokers: c.Addrs(kafkalocal.Plaintext)}, messages: 300_000}
	if text := os.Getenv(messagesVariable); text != "" {
		var err error
		if s.messages, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	conf, err := s.cfg.Sarama()
	if err != nil {
		b.Fatal(err)
	}
	if s.client, err = sarama.NewClient(s.cfg.Brokers, conf); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.client.Close() })
	return s
}

// fill makes the topics of a group and its input.
func (s *bench) fill(b *testing.B, group string) {
	b.Helper()
	spec := func(name, policy string) kafka.TopicSpec {
		return kafka.TopicSpec{Name: name, Partitions: partitions, Replication: 1, Config: map[string]string{"cleanup.policy": policy}}
	}
	plan := []kafka.TopicSpec{spec(inTopic(group), "delete"), spec(outTopic(group), "delete"), spec(kafka.TableOf(group), "compact")}
	if _, err := kafka.Apply(b.Context(), s.cfg, plan); err != nil {
		b.Fatal(err)
	}
	p, err := kafka.NewProducer(s.cfg, kafka.ProducerOptions{})
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error, s.messages)
	rng := rand.NewChaCha8([32]byte{})
	for i := range s.messages {
		value := make([]byte, valueBytes)
		_, _ = rng.Read(value) // it never fails
		r := kafka.Record{Topic: inTopic(group), Key: fmt.Appendf(nil, "key-%d", i%(s.messages/keysPer)), Value: value}
		if err := p.Send(b.Context(), r, func(_ int32, _ int64, err error) { done <- err }); err != nil {
			b.Fatal(err)
		}
	}
	for range s.messages {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		b.Fatal(err)
	}
}

// emitted is how many records stand in the output.
func (s *bench) emitted(b *testing.B, group string) int {
	b.Helper()
	var n int64
	for p := range int32(partitions) {
		at, err := s.client.GetOffset(outTopic(group), p, sarama.OffsetNewest)
		if err != nil {
			b.Fatal(err)
		}
		n += at
	}
	return int(n)
}

// patience with one run; a hang is told from a slow machine by nothing else.
const patience = 10 * time.Minute

func (s *bench) await(b *testing.B, group string, n int) time.Time {
	b.Helper()
	end := time.Now().Add(patience)
	for s.emitted(b, group) < n {
		if time.Now().After(end) {
			b.Fatalf("%d records of %d after %s", s.emitted(b, group), n, patience)
		}
		<-time.After(50 * time.Millisecond)
	}
	return time.Now()
}

// measure runs processes until all is done, and reports the messages per second between a tenth and the end, and what the
// processes took.
func (s *bench) measure(b *testing.B, name string, processes int, command func(group, dir string) *exec.Cmd) {
	for b.Loop() {
		s.runs++
		group := fmt.Sprintf("%s-%d", name, s.runs)
		s.fill(b, group)
		running := make([]*exec.Cmd, processes)
		for i := range running {
			running[i] = command(group, filepath.Join(b.TempDir(), fmt.Sprintf("%s-%d", group, i)))
			if err := running[i].Start(); err != nil {
				b.Fatal(err)
			}
		}
		began := s.await(b, group, s.messages/10)
		from := s.emitted(b, group)
		took := s.await(b, group, s.messages).Sub(began)
		var cpu time.Duration
		var rss int64
		for _, cmd := range running {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				b.Fatal(err)
			}
			if err := cmd.Wait(); err != nil && !strings.Contains(err.Error(), "143") { // Java's way to end by SIGTERM
				b.Fatalf("%s: %v", name, err)
			}
			cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
				rss += usage.Maxrss
			}
		}
		b.ReportMetric(float64(s.messages-from)/took.Seconds(), "messages/s")
		b.ReportMetric(cpu.Seconds()*300_000/float64(s.messages), "CPU-s/300k")
		b.ReportMetric(float64(rss)/1024, "RSS-MB")
		b.ReportMetric(load(b), "load")
	}
	b.ReportMetric(0, "ns/op") // it says nothing here
}

// load is the machine's load average over the last minute, which tells what a figure is worth.
func load(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	n, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// contender is this binary as another process.
func (s *bench) contender(b *testing.B, name string) func(group, dir string) *exec.Cmd {
	return func(group, dir string) *exec.Cmd {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		cmd := exec.CommandContext(b.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), contenderVariable+"="+name, brokersVariable+"="+strings.Join(s.cfg.Brokers, ","), groupVariable+"="+group, dirVariable+"="+dir)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		return cmd
	}
}

// streams is the Kafka Streams application, with its defaults and as many threads as there are cores.
func (s *bench) streams(b *testing.B, guarantee string) func(group, dir string) *exec.Cmd {
	b.Helper()
	classpath := compileStreams(b)
	return func(group, dir string) *exec.Cmd {
		cmd := exec.CommandContext(b.Context(), "java", "-cp", classpath, "-Xmx512m", "-Xlog:disable", "Bench", strings.Join(s.cfg.Brokers, ","), group,
			inTopic(group), outTopic(group), dir, guarantee, strconv.Itoa(runtime.NumCPU()))
		cmd.Stderr = os.Stderr
		return cmd
	}
}

// compileStreams fetches the jars of Kafka Streams into the cache folder with Maven and compiles the application.
func compileStreams(b *testing.B) (classpath string) {
	b.Helper()
	cache, err := kafkalocal.CacheDir()
	if err != nil {
		b.Fatal(err)
	}
	jars := filepath.Join(cache, "kafka-streams-"+kafkalocal.DefaultVersion)
	if _, err := os.Stat(jars); err != nil {
		part := jars + ".part"
		mvn := exec.CommandContext(b.Context(), "mvn", "-q", "-B", "-f", "../kafkalocal/pom.xml", "-Pstreams", "-Dkafka.version="+kafkalocal.DefaultVersion,
			"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+part)
		if out, err := mvn.CombinedOutput(); err != nil {
			b.Fatalf("fetching Kafka Streams: %v\n%s", err, out)
		}
		if err := os.Rename(part, jars); err != nil {
			b.Fatal(err)
		}
	}
	classes := b.TempDir()
	classpath = filepath.Join(jars, "*") + ":" + classes
	if out, err := exec.CommandContext(b.Context(), "javac", "-cp", classpath, "-d", classes, "Bench.java").CombinedOutput(); err != nil {
		b.Fatalf("javac: %v\n%s", err, out)
	}
	return classpath
}

// BenchmarkBeside runs the same work in all contenders, one after the other on one broker. Compare within one run only.
func BenchmarkBeside(b *testing.B) {
	s := newBench(b)
	for _, name := range []string{"sarama-stateless", "engine-stateless", "goka", "engine"} {
		b.Run(name, func(b *testing.B) { s.measure(b, name, 1, s.contender(b, name)) })
	}
	for name, guarantee := range map[string]string{"streams": "at_least_once"} {
		b.Run(name, func(b *testing.B) { s.measure(b, name, 1, s.streams(b, guarantee)) })
	}
}

// BenchmarkProcesses runs the engine in one, two and four processes that share the partitions.
func BenchmarkProcesses(b *testing.B) {
	s := newBench(b)
	for _, n := range []int{1, 2, 4} {
		b.Run(strconv.Itoa(n), func(b *testing.B) { s.measure(b, "engine", n, s.contender(b, "engine")) })
	}
}
