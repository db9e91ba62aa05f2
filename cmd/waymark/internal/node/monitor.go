package node

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/waymarkhq/waymark/api"
)

// gatherer refreshes the gauges of the roles before they are read.
type gatherer struct{ n *Node }

func (g gatherer) Gather() ([]*dto.MetricFamily, error) {
	for _, r := range g.n.runners {
		r.Collect()
	}
	return g.n.registry.Gather()
}

var _ prometheus.Gatherer = gatherer{}

// startMonitor serves health and metrics of roles without the API, where an address is configured.
func (n *Node) startMonitor() error {
	if n.cfg.Monitor.Listen == "" || len(n.o.Roles) == 0 {
		return nil
	}
	ln, err := listen(n.cfg.Monitor.Listen)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer{n}, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, api.Health{Status: "ok"}) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if reasons := n.Ready(r.Context()); len(reasons) > 0 {
			answer(w, http.StatusServiceUnavailable, map[string]any{"ready": false, "reasons": reasons})
			return
		}
		answer(w, http.StatusOK, api.Ready{Ready: true})
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second}
	n.addresses.Monitor = ln.Addr().String()
	n.running.Go(func() {
		if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			n.failed <- err
		}
	})
	n.onClose("the monitor", server.Shutdown)
	return nil
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client has gone
}

// refusal is why documents must not be accepted: what would be promised could not be kept.
func (n *Node) refusal() *api.Unavailable {
	if err := n.guard.Err(); err != nil {
		return &api.Unavailable{Reason: "epoch_changed", Err: err}
	}
	if n.retention == nil {
		return nil
	}
	if err := n.retention.Err(); err != nil {
		return &api.Unavailable{Reason: "records_expire_unread", Err: err}
	}
	return nil
}

// Ready lists why the process is not ready; nothing means that it is.
func (n *Node) Ready(ctx context.Context) []api.NotReady {
	var out []api.NotReady
	add := func(reason string, err error) {
		if err != nil {
			out = append(out, api.NotReady{Reason: reason, Message: err.Error()})
		}
	}
	if why := n.refusal(); why != nil {
		add(why.Reason, why.Err)
	}
	for _, r := range n.runners {
		add("role_not_ready", r.Ready())
	}
	add("views_recovering", n.views.ready())
	add("views_behind", n.views.behind(ctx, n.cfg.Delivery.ViewLag))
	return out
}
