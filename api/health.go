package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

type healthOutput struct{ Body Health }

// health answers while the process runs; it asks nobody.
func (s *Server) health(context.Context, *struct{}) (*healthOutput, error) {
	return &healthOutput{Body: Health{Status: "ok"}}, nil
}

type readyOutput struct{ Body Ready }

// ready answers whether the process does its work, and otherwise why not.
func (s *Server) ready(ctx context.Context, _ *struct{}) (*readyOutput, error) {
	reasons := s.deps.Readiness.Ready(ctx)
	select {
	case <-s.draining:
		reasons = append(reasons, NotReady{Reason: "shutting_down", Message: "The process is ending."})
	default:
	}
	if len(reasons) == 0 {
		return &readyOutput{Body: Ready{Ready: true}}, nil
	}
	p := problem(kindNotReady, "%d reasons", len(reasons)).after(visibleWithin)
	p.Reasons = reasons
	return nil, p
}

type statsOutput struct{ Body Stats }

// stats counts what is there.
func (s *Server) stats(ctx context.Context, _ *struct{}) (*statsOutput, error) {
	stats, err := s.deps.Stats.Stats(ctx)
	if err != nil {
		return nil, s.awayProblem("counting", "counts_unavailable", err)
	}
	return &statsOutput{Body: stats}, nil
}

// metrics hands over to the Prometheus library.
func (s *Server) metrics(context.Context, *struct{}) (*struct{ Body func(huma.Context) }, error) {
	return &struct{ Body func(huma.Context) }{Body: func(hc huma.Context) {
		x := exchangeOf(hc.Context())
		s.exposition.ServeHTTP(x, x.req)
	}}, nil
}

func (s *Server) healthCalls(api huma.API) {
	const tag = "Operation"
	register(api, call{
		id: "get-stats", method: http.MethodGet, path: "/v1/stats", tag: tag, status: http.StatusOK,
		summary: "Counts by status, lag per stage, store size", scope: ScopeRead, problems: []kind{kindUnavailable},
	}, s.stats)
	register(api, call{
		id: "healthz", method: http.MethodGet, path: "/healthz", tag: tag, status: http.StatusOK, summary: "Whether the process runs",
	}, s.health)
	register(api, call{
		id: "readyz", method: http.MethodGet, path: "/readyz", tag: tag, status: http.StatusOK, summary: "Whether the process does its work",
		problems: []kind{kindNotReady}, description: "The 503 lists the reasons.",
	}, s.ready)
	register(api, call{
		id: "metrics", method: http.MethodGet, path: "/metrics", tag: tag, status: http.StatusOK, summary: "Prometheus metrics", scope: ScopeRead,
		answer: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}},
	}, s.metrics)
}

func exposition(d Dependencies) http.Handler {
	return promhttp.HandlerFor(d.Gatherer, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// meters are the API's own metrics.
type meters struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

// newMeters registers the metrics; reg may be nil.
func newMeters(reg prometheus.Registerer) (*meters, error) {
	m := &meters{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waymark_http_requests_total", Help: "Requests answered, by operation and status.",
		}, []string{"operation", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "waymark_http_request_seconds", Help: "Time from the headers of a request to the end of its answer.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}, []string{"operation"}),
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
