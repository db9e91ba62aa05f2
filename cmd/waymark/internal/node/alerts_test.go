package node

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"gopkg.in/yaml.v3"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/processors"
	"github.com/waymarkhq/waymark/rag"
)

// registered collects the names of what is registered; a registry itself shows no vector without values.
type registered map[string]bool

func (r registered) Register(c prometheus.Collector) error {
	r.MustRegister(c)
	return nil
}

func (r registered) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		descs := make(chan *prometheus.Desc, 16)
		c.Describe(descs)
		close(descs)
		for d := range descs {
			_, rest, _ := strings.Cut(d.String(), `fqName: "`)
			name, _, _ := strings.Cut(rest, `"`)
			r[name] = true
		}
	}
}

func (registered) Unregister(prometheus.Collector) bool { return false }

// The rules for alerts can be read, and ask for metrics that exist; so does the runbook.
func TestAlertsAskForMetricsThatExist(t *testing.T) {
	names := registered{}
	engine.NewMetrics(names)
	processors.NewMetrics(names, "weaviate")
	newRetentionWatch(nil, nil, nil, names)
	names.MustRegister(newLettersCollector(func() map[rag.LetterState]int64 { return nil }))
	rules, err := os.ReadFile("../../../../docs/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations struct{ Summary string }
			}
		}
	}
	if err := yaml.Unmarshal(rules, &parsed); err != nil || len(parsed.Groups) != 1 {
		t.Fatalf("%v, %d groups", err, len(parsed.Groups))
	}
	for _, r := range parsed.Groups[0].Rules {
		if r.Alert == "" || !strings.Contains(r.Expr, "waymark_") || r.Annotations.Summary == "" {
			t.Errorf("a rule without a name, an expression or a summary: %+v", r)
		}
	}
	runbook, err := os.ReadFile("../../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`waymark_[a-z_]+`).FindAllString(string(rules)+string(runbook), -1)
	if len(found) < 10 {
		t.Errorf("only %d metrics were found", len(found))
	}
	for _, name := range found {
		if !names[name] {
			t.Errorf("%s: no such metric", name)
		}
	}
}
