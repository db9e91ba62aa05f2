package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/waymarkhq/waymark/e2e/checker"
)

// servers are given ones that a world runs on instead of an embedded broker and a SQLite file: `make e2e-native` gives them.
type servers struct {
	brokers     string // KAFKA_BROKERS, host:port,…
	replication string // KAFKA_REPLICATION; 1 if unset
	weaviate    string // WEAVIATE_URL
	grpc        string // WEAVIATE_GRPC; none: REST only
}

// given reports whether both servers are named.
func given() (servers, bool) {
	s := servers{os.Getenv("KAFKA_BROKERS"), os.Getenv("KAFKA_REPLICATION"), os.Getenv("WEAVIATE_URL"), os.Getenv("WEAVIATE_GRPC")}
	if s.replication == "" {
		s.replication = "1"
	}
	return s, s.brokers != "" && s.weaviate != ""
}

// backend says what the worlds run on.
func backend() string {
	if s, ok := given(); ok {
		return "given brokers " + s.brokers + " and Weaviate " + s.weaviate
	}
	return "embedded broker, SQLite store"
}

var notInTopics = regexp.MustCompile(`[^a-z0-9]+`)

// use makes topics of this run of the test on given servers, which may still have those of earlier runs; the collection is
// made by the first process that needs it.
func (p *pods) use(s servers, partitions int32) {
	p.t.Helper()
	name := strings.Trim(notInTopics.ReplaceAllString(strings.ToLower(strings.TrimPrefix(p.t.Name(), "TestFault")), "-"), "-") + fmt.Sprintf("-%x", time.Now().UnixNano())
	p.broker, p.prefix = s.brokers, name
	collection := "F" + strings.ReplaceAll(name, "-", "_")
	p.env = append(p.env, "WAYMARK_KAFKA_BROKERS="+s.brokers, "WAYMARK_KAFKA_TOPIC_PREFIX="+name, "WAYMARK_KAFKA_REPLICATION="+s.replication,
		"WAYMARK_STORE_KIND=weaviate", "WAYMARK_WEAVIATE_URL="+s.weaviate, "WAYMARK_WEAVIATE_GRPC="+s.grpc, "WAYMARK_WEAVIATE_COLLECTION="+collection,
		// Three brokers, a store and the processes share the machine: views may be seconds behind.
		"WAYMARK_DELIVERY_REMOVAL_DELAY=6s", "WAYMARK_DELIVERY_VIEW_LAG=5s")
	for i, e := range p.env {
		if strings.HasPrefix(e, "WAYMARK_STORE_PATH=") {
			p.env = append(p.env[:i:i], p.env[i+1:]...)
			break
		}
	}
	apply := append(p.env[:len(p.env):len(p.env)], "WAYMARK_KAFKA_PARTITIONS="+fmt.Sprint(partitions))
	if out, errs, code := waymark(p.t, apply, "topics", "apply"); code != 0 {
		p.t.Fatalf("topics apply: %d %s%s", code, out, errs)
	}
	store := checker.Weaviate{URL: s.weaviate, Client: &http.Client{Timeout: 30 * time.Second}}
	p.objects = func(ctx context.Context) (map[string][]checker.Object, error) { return store.Read(ctx, collection) }
}

// partitionsGiven spares a small cluster half of the partitions that the embedded broker has.
const partitionsGiven = 2
