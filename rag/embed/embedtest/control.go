package embedtest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
)

// control adds, for tests in another process: POST and DELETE /control/faults, GET /control/stats and
// GET /control/embedded?text=….
func (f *Fake) control() {
	f.mux.HandleFunc("POST /control/faults", func(w http.ResponseWriter, r *http.Request) {
		var fault Fault
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
		d.DisallowUnknownFields()
		err := d.Decode(&fault)
		if err == nil {
			err = f.Inject(fault)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	f.mux.HandleFunc("DELETE /control/faults", func(w http.ResponseWriter, _ *http.Request) {
		f.Clear()
		w.WriteHeader(http.StatusNoContent)
	})
	f.mux.HandleFunc("GET /control/stats", func(w http.ResponseWriter, _ *http.Request) { reply(w, f.Stats()) })
	f.mux.HandleFunc("GET /control/embedded", func(w http.ResponseWriter, r *http.Request) {
		reply(w, map[string]int{"embedded": f.Embedded(r.URL.Query().Get("text"))})
	})
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that has gone needs no answer
}

// Serve runs a Fake on a free port of the loopback until the test ends, and returns it with its URL.
func Serve(t testing.TB, c Config) (*Fake, string) {
	t.Helper()
	f := NewFake(c)
	server := httptest.NewServer(f)
	t.Cleanup(func() {
		f.Clear() // or a hanging call would keep Close waiting
		server.CloseClientConnections()
		server.Close()
	})
	return f, server.URL
}
