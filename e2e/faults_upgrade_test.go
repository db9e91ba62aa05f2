package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/codecs"
	"github.com/waymarkhq/waymark/e2e/checker"
	"github.com/waymarkhq/waymark/internal/fault"
)

// Row 27: pods are replaced one by one, under load, first by those of a release that reads the next format of everything and
// then by those of one that writes it. Nothing dies of it. A pod of the release before both, which comes back too late, holds
// what it does not understand and says that it is not ready.
func TestFaultRollingUpgrade(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 27})
	gateway := w.start("api", "api")
	pods := []*process{gateway, w.start("first", workers...), w.start("second", workers...)}
	w.api.waitReady()
	w.watch()
	stop := w.changing(15, 60*time.Millisecond)
	for _, release := range []string{fault.ReadNext, fault.WriteNext} {
		for _, p := range pods {
			p.waitReady()
			p.kill(syscall.SIGTERM)
			if code := p.code(); code != 0 {
				t.Errorf("%s ended with %d", p.name, code)
			}
			p.setEnv("FAULT_FORMATS", release)
			p.launch()
			pause(time.Second)
		}
	}
	for _, p := range pods {
		p.waitReady()
	}
	w.awaitFormats(1, 2)

	pods[2].kill(syscall.SIGTERM) // there may be no partitions for three
	late := w.start("late", workers...)
	eventually(t, "the pod of the release before to hold and to say so", func() error {
		code, b, err := (api{t, "http://" + late.monitor}).try(http.MethodGet, "/readyz", nil, nil)
		if err != nil || code != http.StatusServiceUnavailable || !strings.Contains(string(b), "newer") {
			return errors.Join(fmt.Errorf("%d %s", code, b), err)
		}
		return nil
	})
	stop()
	late.kill(syscall.SIGTERM)
	pods[2].launch()
	w.over()
	if r := w.check(); r.Letters != 0 || r.Statuses["dead"] != 0 {
		t.Errorf("%d letters: a format is nobody's fault", r.Letters)
	}
}

// awaitFormats waits until the events of the log are of all these formats.
func (w *world) awaitFormats(formats ...int) {
	w.t.Helper()
	eventually(w.t, "records of two formats", func() error {
		log, err := checker.ReadLog(w.t.Context(), w.broker, []string{w.topic("events")})
		if err != nil {
			return err
		}
		seen := map[int]int{}
		for _, r := range log[w.topic("events")] {
			e, err := codecs.Open(r.Value)
			if err != nil {
				return err
			}
			seen[e.Format]++
		}
		for _, f := range formats {
			if seen[f] == 0 {
				return fmt.Errorf("of each format: %v", seen)
			}
		}
		return nil
	})
}
