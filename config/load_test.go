package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/config"
)

var up = config.Target{Command: config.CommandUp}

// write puts text into a file named waymark.yaml and makes its folder the current one, so that origins are short.
func write(t *testing.T, text string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("waymark.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "waymark.yaml"
}

func mustLoad(t *testing.T, src config.Sources, target config.Target) *config.Config {
	t.Helper()
	c, err := config.Load(src, target)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// problems are the lines of Load's error.
func problems(t *testing.T, src config.Sources, target config.Target) []string {
	t.Helper()
	c, err := config.Load(src, target)
	if err == nil {
		return nil
	}
	if c != nil {
		t.Errorf("a configuration came with the error")
	}
	var list config.Problems
	if !errors.As(err, &list) {
		t.Fatalf("the error is a %T, want Problems: %v", err, err)
	}
	lines := make([]string, 0, len(list))
	for _, p := range list {
		lines = append(lines, p.String())
	}
	return lines
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestDefaultsOfUp(t *testing.T) {
	c := mustLoad(t, config.Sources{}, up)
	if c.Kafka.Partitions != 4 || c.Kafka.Replication != 1 {
		t.Errorf("embedded broker: %d partitions, %d replicas, want 4 and 1", c.Kafka.Partitions, c.Kafka.Replication)
	}
	if want := filepath.Join("waymark-data", "store.db"); c.Store.Path != want {
		t.Errorf("store.path is %q, want %q", c.Store.Path, want)
	}
	if c.API.Listen != "127.0.0.1:8484" || c.Monitor.Listen != "" || c.Broker.Listen != "127.0.0.1:0" {
		t.Errorf("listeners: %+v %+v %+v", c.API, c.Monitor, c.Broker)
	}
	if c.Delivery.RemovalDelay != 30*time.Second || c.Delivery.ViewLag != 10*time.Second || c.Delivery.Attempts != 3 {
		t.Errorf("delivery: %+v", c.Delivery)
	}
}

func TestDefaultsOnACluster(t *testing.T) {
	flags := map[string]string{"kafka.brokers": "a:9092, b:9092"}
	c := mustLoad(t, config.Sources{Flags: flags}, up)
	if c.Kafka.Partitions != 12 || c.Kafka.Replication != 3 {
		t.Errorf("cluster: %d partitions, %d replicas, want 12 and 3", c.Kafka.Partitions, c.Kafka.Replication)
	}
	if len(c.Kafka.Brokers) != 2 || c.Kafka.Brokers[1] != "b:9092" {
		t.Errorf("brokers: %q", c.Kafka.Brokers)
	}
}

func TestTheLaterSourceWins(t *testing.T) {
	file := write(t, "splitting: {tokens: 100, overlap: 10}\ndelivery:\n  attempts: 5\n")
	c := mustLoad(t, config.Sources{
		File:    file,
		Environ: []string{"WAYMARK_SPLITTING_TOKENS=300", "WAYMARK_DELIVERY_ATTEMPTS=6", "PATH=/bin"},
		Flags:   map[string]string{"delivery.attempts": "7"},
	}, up)
	if c.Splitting.Overlap != 10 || c.Splitting.Tokens != 300 || c.Delivery.Attempts != 7 {
		t.Errorf("got overlap %d (file), tokens %d (variable), attempts %d (flag)",
			c.Splitting.Overlap, c.Splitting.Tokens, c.Delivery.Attempts)
	}
	for key, want := range map[string]string{
		"splitting.overlap": "waymark.yaml:1", "splitting.tokens": "WAYMARK_SPLITTING_TOKENS",
		"delivery.attempts": "--delivery.attempts", "api.listen": "",
	} {
		if got := c.OriginOf(key).String(); got != want {
			t.Errorf("%s comes from %q, want %q", key, got, want)
		}
	}
}

func TestEveryProblemAtOnceWithItsPlace(t *testing.T) {
	file := write(t, `data_dir: ""
kafka:
  topic_prefx: x
  partitions: many
  epoch: -1
  tls: [1]
splitting:
  tokens: 100
  overlap: 90
delivery: {attempts: 0, backoff: {initial: 30, max: 1s}}
splitting: {}
stoer: {kind: sqlite}
embedding:
  kind: cohere
`)
	got := problems(t, config.Sources{
		File:    file,
		Environ: []string{"WAYMARK_KAFKA_BROKER=x:1", "WAYMARK_EMBEDDING_BATCH=0"},
		Flags:   map[string]string{"api.listen": "8484", "monitor.listen": "0.0.0.0:99999"},
	}, up)
	expect(t, got,
		`waymark.yaml:1: data_dir: must name a folder`,
		`waymark.yaml:3: kafka.topic_prefx: unknown key; did you mean topic_prefix?`,
		`waymark.yaml:4: kafka.partitions: "many" is not a whole number`,
		`waymark.yaml:5: kafka.epoch: -1 is not between 0 and 8191`,
		`waymark.yaml:6: kafka.tls: must hold keys with values: enabled, ca_file, cert_file, key_file, server_name`,
		`waymark.yaml:9: splitting.overlap: an overlap of 90 is more than half of 100 tokens`,
		`waymark.yaml:10: delivery.backoff.initial: "30" is not a duration such as 30s, 500ms or 1m30s`,
		`waymark.yaml:10: delivery.attempts: 0 is not between 1 and 100`,
		`waymark.yaml:11: splitting: is there twice; first in line 7`,
		`waymark.yaml:12: stoer: unknown key; did you mean store?`,
		`waymark.yaml:14: embedding.kind: cohere is not yet available; this release has builtin, openai`,
		`WAYMARK_KAFKA_BROKER: unknown variable; did you mean WAYMARK_KAFKA_BROKERS?`,
		`WAYMARK_EMBEDDING_BATCH: embedding.batch: 0 is not between 1 and 2048`,
		`--api.listen: "8484" is not host:port: write it like 127.0.0.1:8484`,
		`--monitor.listen: "0.0.0.0:99999" is not host:port: the port must be a number from 1 to 65535`,
	)
}

func TestErrorListsProblems(t *testing.T) {
	_, err := config.Load(config.Sources{Flags: map[string]string{"data_dir": "", "kafka.epoch": "x"}}, up)
	want := "configuration: 2 problems\n  --kafka.epoch: \"x\" is not a whole number\n  --data-dir: data_dir: must name a folder"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	_, err = config.Load(config.Sources{Flags: map[string]string{"data_dir": ""}}, up)
	if want := "configuration: --data-dir: data_dir: must name a folder"; err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestFileForms(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"empty", "", ""},
		{"comment", "# nothing\n", ""},
		{"sections without values", "kafka:\nstore:\n  path:\n", ""},
		{"alias", "splitting: {tokens: &n 100, overlap: 10}\nembedding: {batch: *n}\n", ""},
		{"list", "- a\n", "waymark.yaml:1: must hold keys with values: data_dir, kafka, broker, store, weaviate, embedding, splitting, limits, blobs, parsers, delivery, api, monitor"},
		{"text for a list", "kafka: {brokers: a:1}\n", "waymark.yaml:1: kafka.brokers: must be a list, written [a, b]"},
		{"list of lists", "kafka: {brokers: [[a]]}\n", "waymark.yaml:1: kafka.brokers: must be a list of texts"},
		{"map for a number", "kafka:\n  epoch: {a: b}\n", "waymark.yaml:2: kafka.epoch: must be a number"},
		{"yes for a boolean", "kafka: {tls: {enabled: yes}}\n", `waymark.yaml:1: kafka.tls.enabled: "yes" is neither true nor false`},
		{"merge key", "x: &x {}\nkafka:\n  <<: *x\n", "waymark.yaml:1: x: unknown key\nwaymark.yaml:3: kafka.<<: unknown key"},
		{"second document", "data_dir: a\n---\ndata_dir: b\n", "waymark.yaml:2: a second YAML document; one file holds one configuration"},
		{"not YAML", "kafka: {\n\n", "waymark.yaml:2: not YAML: did not find expected node content"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			file := write(t, tc.text)
			if got := strings.Join(problems(t, config.Sources{File: file}, up), "\n"); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestFileThatCannotBeRead(t *testing.T) {
	t.Chdir(t.TempDir())
	expect(t, problems(t, config.Sources{File: "none.yaml"}, up), "--config: open none.yaml: no such file or directory")
	if err := os.WriteFile("huge.yaml", make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, problems(t, config.Sources{File: "huge.yaml"}, up), "--config: huge.yaml is larger than 1048576 bytes")
}

func TestVariables(t *testing.T) {
	c := mustLoad(t, config.Sources{
		Environ: []string{
			"WAYMARK_KAFKA_BROKERS= a:1 ,b:2,", "WAYMARK_STORE_PATH=", "WAYMARK_API=http://x", "WAYMARK_KAFKA_TOPIC_PREFIX=p",
			// What Kubernetes sets for services named waymark and waymark-api.
			"WAYMARK_SERVICE_HOST=10.0.0.1", "WAYMARK_SERVICE_PORT=80", "WAYMARK_SERVICE_PORT_HTTP=80", "WAYMARK_PORT=tcp://10.0.0.1:80",
			"WAYMARK_PORT_80_TCP=tcp://10.0.0.1:80", "WAYMARK_PORT_80_TCP_ADDR=10.0.0.1", "WAYMARK_API_PORT=tcp://10.0.0.2:80",
		},
		Reserved: []string{"WAYMARK_API"},
	}, up)
	if strings.Join(c.Kafka.Brokers, "|") != "a:1|b:2" || c.Kafka.TopicPrefix != "p" || c.Store.Path == "" {
		t.Errorf("got %+v, store.path %q", c.Kafka, c.Store.Path)
	}
	expect(t, problems(t, config.Sources{Environ: []string{"WAYMARK_API=x"}}, up), "WAYMARK_API: unknown variable")
}

func TestAProblemOfAnEarlierSourceIsReportedEvenIfOverridden(t *testing.T) {
	file := write(t, "kafka: {epoch: x}\n")
	got := problems(t, config.Sources{File: file, Flags: map[string]string{"kafka.epoch": "9000"}}, up)
	expect(t, got, `waymark.yaml:1: kafka.epoch: "x" is not a whole number`, `--kafka.epoch: 9000 is not between 0 and 8191`)
}
