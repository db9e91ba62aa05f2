package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// pythonPackages are pinned, so that a run means the same tomorrow.
var pythonPackages = []string{"confluent-kafka==2.11.1", "kafka-python==2.2.15"}

// python is an interpreter with Kafka clients, made once in the cache folder.
func python(t *testing.T) string {
	t.Helper()
	venv := filepath.Join(cacheDir(t), "python-"+fmt.Sprintf("%x", pythonPackages)[:12])
	interpreter := filepath.Join(venv, "bin", "python")
	probe := exec.Command(interpreter, "-c", "import confluent_kafka, kafka")
	if probe.Run() == nil {
		return interpreter
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("NOT RUN: no python3 on this machine, so no foreign producers")
	}
	for _, args := range [][]string{
		{"python3", "-m", "venv", "--clear", venv},
		append([]string{interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"}, pythonPackages...),
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	return interpreter
}

// The clients of the producers are there, and are made where they are not: what runs later may have no network.
func TestPythonClients(t *testing.T) {
	if out, err := exec.Command(python(t), "-c", "import confluent_kafka, kafka").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Producers in another language, two of whose partitioners are not ours: each document is processed once, on its home
// partition, and its second version is the one that is served.
func TestForeignProducers(t *testing.T) {
	interpreter := python(t)
	p := newPods(t)
	p.startBroker()
	p.run("all", append([]string{"api"}, workers...)...)
	p.api.waitReady()
	const count = 20
	out, err := exec.Command(interpreter, "testdata/producers.py", p.broker, p.topic("documents"), fmt.Sprint(count)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"murmur2", "crc32", "kafkapython"} {
		for i := range count {
			id := fmt.Sprintf("%s-%d", name, i)
			want := fmt.Sprintf("The second text of %s %d.", name, i)
			eventually(t, id+" to be served in its second version", func() error {
				hits := p.api.served(id)
				if len(hits) != 1 || hits[0].Text != want {
					return fmt.Errorf("%+v", hits)
				}
				return nil
			})
		}
	}
	eventually(t, "every record to be done with", func() error {
		for stage, lag := range p.stats().Lag {
			if lag != 0 {
				return fmt.Errorf("%s is %d behind", stage, lag)
			}
		}
		return nil
	})
	checkOnceEach(t, p, count)
}

// checkOnceEach reads the whole log of events: one final per record, and as many forwards as records on strange partitions.
func checkOnceEach(t *testing.T, p *pods, count int) {
	t.Helper()
	strange, forwarded := 0, 0
	home := kgo.StickyKeyPartitioner(nil).ForTopic(p.topic("documents"))
	for _, r := range readTopic(t, p.broker, p.topic("documents"), 6*count) {
		if _, err := headerOf(r, "waymark-origin"); err == nil {
			forwarded++
			if int(r.Partition) != home.Partition(&kgo.Record{Key: r.Key}, partitionsOfBroker) {
				t.Errorf("%s was forwarded to partition %d, which is not its home", r.Key, r.Partition)
			}
			continue
		}
		if int(r.Partition) != home.Partition(&kgo.Record{Key: r.Key}, partitionsOfBroker) {
			strange++
		}
	}
	if strange == 0 {
		t.Error("no record stood on a strange partition: nothing was tested")
	}
	if got := p.api.metric("waymark_forwarded_total"); int(got) < strange {
		t.Errorf("%v forwards, %d of the first records stood on a strange partition (%d forwarded ones seen)", got, strange, forwarded)
	}
	if got := p.api.metric("waymark_documents_total", `status="indexed"`) + p.api.metric("waymark_documents_total", `status="superseded"`); int(got) != 6*count {
		t.Errorf("%v versions ended, want %d", got, 6*count)
	}
}

// partitionsOfBroker is the default of the embedded broker.
const partitionsOfBroker = 4
