package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealthcheck(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte("the reason"))
	}))
	if err := run([]string{server.URL}); err != nil {
		t.Errorf("a good answer: %v", err)
	}
	status = http.StatusServiceUnavailable
	if err := run([]string{server.URL}); err == nil || !strings.Contains(err.Error(), "the reason") {
		t.Errorf("a bad answer: %v", err)
	}
	server.Close()
	for _, args := range [][]string{{server.URL}, {"::"}, {}, {"a", "b"}} {
		if err := run(args); err == nil {
			t.Errorf("%q is healthy", args)
		}
	}
}
