package embedded_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/embedded"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
)

// childDir tells the test binary that it is the broker's process.
const childDir = "EMBEDDED_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir)
		return
	}
	os.Exit(m.Run())
}

// hello is the first line of the child.
type hello struct {
	Addrs []string
	Error string
	PID   int // of the process that has the folder
}

// child runs a broker until it is killed or its input ends.
func child(dir string) {
	plan, err := kafka.Plan(kafka.PlanOptions{Prefix: "w", Partitions: 2, Replication: 1, Embedded: true})
	if err != nil {
		panic(err)
	}
	b, err := embedded.Start(context.Background(), embedded.Options{Dir: dir, Plan: plan})
	var h hello
	var locked *embedded.LockedError
	switch {
	case errors.As(err, &locked):
		h.PID, h.Error = locked.PID, err.Error()
	case err != nil:
		h.Error = err.Error()
	default:
		h.Addrs = b.Addrs()
	}
	line, _ := json.Marshal(h)
	fmt.Println(string(line))
	if b != nil {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = b.Close(context.Background())
	}
}

type process struct {
	hello
	cmd *exec.Cmd
	in  io.Closer
}

func spawn(t *testing.T, dir string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, in: in}
	t.Cleanup(func() { p.kill() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatalf("child: %v", err)
	}
	if err := json.Unmarshal(line, &p.hello); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func (p *process) config() kafka.Config { return kafka.Config{Brokers: p.Addrs} }

var documents = kafka.NewTopics("w").Documents

func TestStateSurvivesKill9AndStop(t *testing.T) {
	dir := t.TempDir()
	p := spawn(t, dir)
	addr := p.Addrs[0]
	var want int
	for round := range 4 {
		for range 50 {
			kafkatest.Produce(t, p.config(), kafka.Record{Topic: documents, Key: fmt.Append(nil, want), Value: fmt.Append(nil, want)})
			want++
		}
		if round%2 == 0 {
			p.kill() // SIGKILL
		} else {
			if err := p.in.Close(); err != nil {
				t.Fatal(err)
			}
			if err := p.cmd.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		p = spawn(t, dir)
		if p.Error != "" {
			t.Fatalf("round %d: %s", round, p.Error)
		}
		if p.Addrs[0] != addr {
			t.Errorf("round %d: the broker moved from %s to %s", round, addr, p.Addrs[0])
		}
		if got := len(kafkatest.ReadAll(t, p.config(), documents)); got != want {
			t.Fatalf("round %d: %d records, want %d", round, got, want)
		}
	}
}

// Whatever was acknowledged is there after kill -9 in the middle of appending, in order, and appending goes on.
func TestLogIsReadableAfterKill9WhileAppending(t *testing.T) {
	dir := t.TempDir()
	acked := make(map[string]int) // highest acknowledged number by key
	for round := range 3 {
		p := spawn(t, dir)
		if p.Error != "" {
			t.Fatalf("round %d: %s", round, p.Error)
		}
		appendUntilKilled(t, p, round, acked)
		p = spawn(t, dir)
		if p.Error != "" {
			t.Fatalf("round %d: %s", round, p.Error)
		}
		last := make(map[string]int)
		for _, r := range kafkatest.ReadAll(t, p.config(), documents) {
			n, err := strconv.Atoi(strings.TrimSpace(string(r.Value[:12])))
			if err != nil || n != last[string(r.Key)]+1 {
				t.Fatalf("round %d: key %s: record %q follows %d", round, r.Key, r.Value[:12], last[string(r.Key)])
			}
			last[string(r.Key)] = n
		}
		for k, n := range acked {
			if last[k] < n {
				t.Fatalf("round %d: key %s was acknowledged up to %d, the log ends at %d", round, k, n, last[k])
			}
		}
		p.kill()
	}
}

// appendUntilKilled sends numbered records as fast as it can and kills the broker after some thousand of them.
func appendUntilKilled(t *testing.T, p *process, round int, acked map[string]int) {
	t.Helper()
	producer, err := kafka.NewProducer(p.config(), kafka.ProducerOptions{DeliveryTimeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	type ack struct {
		key string
		n   int
		err error
	}
	ctx, stop := context.WithCancel(t.Context())
	var sender sync.WaitGroup
	acks := make(chan ack, 1<<16)
	sender.Go(func() {
		padding := strings.Repeat("x", 2000)
		for i := 0; ctx.Err() == nil; i++ {
			key, n := fmt.Sprintf("%d-%d", round, i%5), i/5+1
			r := kafka.Record{Topic: documents, Key: []byte(key), Value: fmt.Appendf(nil, "%-12d%s", n, padding)}
			if producer.Send(ctx, r, func(_ int32, _ int64, err error) { acks <- ack{key, n, err} }) != nil {
				return
			}
		}
	})
	count := func(a ack) {
		if a.err == nil {
			acked[a.key] = a.n
		}
	}
	for range 3000 {
		count(kafkatest.Receive(t, "acknowledgement", acks))
	}
	p.kill()
	stop()
	sender.Wait()
	_ = producer.Close() // says that records were in flight
	close(acks)
	for a := range acks {
		count(a)
	}
}

func TestSecondProcessIsRefusedByPID(t *testing.T) {
	dir := t.TempDir()
	first := spawn(t, dir)
	second := spawn(t, dir)
	if second.PID != first.cmd.Process.Pid {
		t.Fatalf("second process: %+v, want the first one's id %d", second.hello, first.cmd.Process.Pid)
	}
	var locked *embedded.LockedError
	_, err := embedded.Start(kafkatest.Context(t), embedded.Options{Dir: dir})
	if !errors.As(err, &locked) || locked.PID != first.cmd.Process.Pid || !strings.Contains(err.Error(), strconv.Itoa(locked.PID)) {
		t.Fatalf("this process: %v", err)
	}
	first.kill()
	third := spawn(t, dir)
	if third.Error != "" {
		t.Fatalf("after kill -9 of the first: %s", third.Error)
	}
}

func TestStartAndCloseLeaveNothingBehind(t *testing.T) {
	kafkatest.NoLeaks(t)
	dir := t.TempDir()
	for range 3 {
		b, err := embedded.Start(kafkatest.Context(t), embedded.Options{Dir: dir, Plan: kafkatest.Plan(t, "w", 2)})
		if err != nil {
			t.Fatal(err)
		}
		kafkatest.Stop(t, b)
		kafkatest.Stop(t, b)
	}
}

func TestListen(t *testing.T) {
	start := func(dir, listen string) (*embedded.Broker, error) {
		b, err := embedded.Start(kafkatest.Context(t), embedded.Options{Dir: dir, Listen: listen})
		if err == nil {
			t.Cleanup(func() { kafkatest.Stop(t, b) })
		}
		return b, err
	}
	for _, address := range []string{"0.0.0.0:0", "192.0.2.1:0", "example.com:0", "nonsense", ":0"} {
		if _, err := start(t.TempDir(), address); err == nil || !strings.Contains(err.Error(), "broker.listen") {
			t.Errorf("%s: %v", address, err)
		}
	}
	// A port that somebody else has taken meanwhile is given up, one that the operator has chosen is not.
	dir := t.TempDir()
	b, err := start(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	taken := b.Addrs()[0]
	kafkatest.Stop(t, b)
	l, err := net.Listen("tcp", taken)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := start(dir, taken); err == nil {
		t.Error("a port that is taken was accepted")
	}
	b, err = start(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if b.Addrs()[0] == taken {
		t.Errorf("the broker is on %s, which is taken", taken)
	}
}

func TestPlanThatDoesNotFitIsRefused(t *testing.T) {
	dir := t.TempDir()
	b := kafkatest.StartIn(t, dir, kafkatest.Plan(t, "w", 2)...)
	kafkatest.Stop(t, b)
	_, err := embedded.Start(kafkatest.Context(t), embedded.Options{Dir: dir, Plan: kafkatest.Plan(t, "w", 3)})
	var unfixable *kafka.UnfixableError
	if !errors.As(err, &unfixable) {
		t.Fatalf("error %v", err)
	}
	kafkatest.StartIn(t, dir, kafkatest.Plan(t, "w", 2)...) // and the folder is free again
}

// The broker's own clock takes nothing that has to stay, however old it is.
func TestNothingThatHasToStayIsCompactedOrDeleted(t *testing.T) {
	b := kafkatest.StartBroker(t, kafkatest.Plan(t, "w", 1)...)
	topics := kafka.NewTopics("w")
	stay := []string{topics.Documents, topics.DeadLetters, topics.Tables.Chunker, topics.Tables.Embedder, topics.Tables.Indexer,
		topics.Tables.Tracker, topics.Tables.DeadLetters, topics.Cluster}
	old := time.Now().Add(-400 * 24 * time.Hour)
	for i := range 3 {
		for _, topic := range append(stay, topics.Chunks) {
			kafkatest.Produce(t, b.Config(), kafka.Record{Topic: topic, Key: []byte("k"), Value: fmt.Append(nil, i), Timestamp: old})
		}
	}
	b.Cluster().Compact()
	b.Cluster().ApplyRetention()
	for _, topic := range stay {
		if got := len(kafkatest.ReadAll(t, b.Config(), topic)); got != 3 {
			t.Errorf("%s: %d of 3 records are left", topic, got)
		}
	}
	if got := len(kafkatest.ReadAll(t, b.Config(), topics.Chunks)); got != 0 {
		t.Errorf("%s: %d records from before the retention", topics.Chunks, got)
	}
}

func BenchmarkStartWith100kRecords(b *testing.B) {
	dir := b.TempDir()
	plan := kafkatest.Plan(b, "w", 4)
	broker := kafkatest.StartIn(b, dir, plan...)
	records := make([]kafka.Record, 100_000)
	value := []byte(strings.Repeat("0123456789", 100))
	for i := range records {
		records[i] = kafka.Record{Topic: documents, Key: fmt.Append(nil, i), Value: value}
	}
	kafkatest.Produce(b, broker.Config(), records...)
	kafkatest.Stop(b, broker)
	for b.Loop() {
		broker, err := embedded.Start(b.Context(), embedded.Options{Dir: dir, Plan: plan})
		if err != nil {
			b.Fatal(err)
		}
		kafkatest.Stop(b, broker)
	}
}

// A pod's producer goes on after the broker was killed and has come back, and nothing is written twice or out of order.
func TestProducerOutlivesKill9OfTheBroker(t *testing.T) {
	dir := t.TempDir()
	p := spawn(t, dir)
	producer, err := kafka.NewProducer(p.config(), kafka.ProducerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := producer.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx := kafkatest.Context(t)
	send := func(i int) error {
		_, _, err := producer.SendSync(ctx, kafka.Record{Topic: documents, Key: []byte("k"), Value: fmt.Append(nil, i)})
		return err
	}
	n := 0
	for round := range 3 {
		for range 5 {
			if err := send(n); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			n++
		}
		p.kill()
		p = spawn(t, dir)
	}
	got := kafkatest.ReadAll(t, p.config(), documents)
	if len(got) != n {
		t.Fatalf("%d records, want %d", len(got), n)
	}
	for i, r := range got {
		if string(r.Value) != strconv.Itoa(i) {
			t.Fatalf("record %d is %s", i, r.Value)
		}
	}
}

func TestTheAddressOfAFolder(t *testing.T) {
	dir := t.TempDir()
	if at, known := embedded.Address(dir, ""); known {
		t.Errorf("a folder without a broker has the address %s", at)
	}
	b, err := embedded.Start(t.Context(), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	at, known := embedded.Address(dir, "127.0.0.1:0")
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !known || at != b.Addrs()[0] {
		t.Errorf("address %q, it listened on %s", at, b.Addrs()[0])
	}
	if at, known := embedded.Address(dir, "127.0.0.1:7"); !known || at != "127.0.0.1:7" {
		t.Errorf("the address that was asked for is %q", at)
	}
}
