package engine

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/waymarkhq/waymark/stage"
)

// outages are the dependencies that are away as this group sees it; they stand in the metric and in readiness.
type outages struct {
	r  *runner
	mu sync.Mutex
	on map[string]string // dependency: what it said last
}

func (o *outages) begin(dependency string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.on == nil {
		o.on = map[string]string{}
	}
	if _, known := o.on[dependency]; !known {
		o.r.log.Warn("a dependency is away; its messages wait", "dependency", dependency, "error", err)
		o.r.env.Metrics.outage.WithLabelValues(dependency).Set(1)
	}
	o.on[dependency] = err.Error()
}

// over ends the outage of a dependency; "" is none.
func (o *outages) over(dependency string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.on[dependency]; known {
		o.end(dependency)
	}
}

// overAll: a batch went well, so what batches need is there. That says nothing of a record in a newer format, which holds
// another partition until this process is upgraded.
func (o *outages) overAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for dependency := range o.on {
		if dependency != outageNewerFormat {
			o.end(dependency)
		}
	}
}

// outageNewerFormat is what this process lacks when a record or a row is of a later release.
const outageNewerFormat = "newer_format"

// outageOf names the dependency that is away.
func outageOf(err error) string {
	if errors.Is(err, stage.ErrNewerFormat) {
		return outageNewerFormat
	}
	return stage.ReasonOf(err, "unknown")
}

func (o *outages) end(dependency string) {
	delete(o.on, dependency)
	o.r.log.Info("a dependency is back", "dependency", dependency)
	o.r.env.Metrics.outage.WithLabelValues(dependency).Set(0)
}

func (o *outages) err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.on) == 0 {
		return nil
	}
	var all []string
	for dependency, what := range o.on {
		all = append(all, fmt.Sprintf("%s is away: %s", dependency, what))
	}
	sort.Strings(all)
	return fmt.Errorf("%s: %s", o.r.group.name, strings.Join(all, "; "))
}
