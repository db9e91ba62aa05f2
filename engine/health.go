package engine

import (
	"encoding/json"
	"net/http"
)

// Handler answers two questions of an orchestrator. GET /healthz: 200 as long as the process answers at all. GET /readyz: 200
// while every group processes messages, else 503 with the reasons, {"ready":false,"reasons":[{"reason":…,"message":…}]}.
func (s *Supervisor) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		s.answer(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		reasons := s.reasons()
		if len(reasons) == 0 {
			s.answer(w, http.StatusOK, readiness{Ready: true})
			return
		}
		s.answer(w, http.StatusServiceUnavailable, readiness{Reasons: reasons})
	})
	return mux
}

type readiness struct {
	Ready   bool     `json:"ready"`
	Reasons []reason `json:"reasons,omitempty"`
}

type reason struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (s *Supervisor) reasons() []reason {
	s.mu.Lock()
	runners, waiting := s.runners, s.waiting
	s.mu.Unlock()
	if runners == nil {
		return []reason{{"not_started", waiting.Error()}}
	}
	var all []reason
	for _, r := range runners {
		if err := r.Ready(); err != nil {
			all = append(all, reason{"group_not_ready", err.Error()})
		}
	}
	return all
}

func (s *Supervisor) answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.config.Log.Debug("a client of the health check has gone", "error", err)
	}
}
