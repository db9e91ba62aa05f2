package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/api/apitest"
)

func BenchmarkNew(b *testing.B) {
	world := apitest.NewWorld()
	deps := world.Dependencies()
	deps.Registerer = nil
	for b.Loop() {
		if _, err := api.New(api.Config{}, deps); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSubmit(b *testing.B) {
	world := apitest.NewWorld()
	world.Publisher.Discard = true
	server, err := api.New(api.Config{}, world.Dependencies())
	if err != nil {
		b.Fatal(err)
	}
	body := `{"id":"a","text":"` + strings.Repeat("x", 2000) + `"}`
	b.ReportAllocs()
	for b.Loop() {
		if a := serve(server, newRequest(http.MethodPost, "/v1/documents", strings.NewReader(body))); a.status != http.StatusAccepted {
			b.Fatal(a.status)
		}
	}
}

func BenchmarkBatch(b *testing.B) {
	world := apitest.NewWorld()
	world.Publisher.Discard = true
	server, err := api.New(api.Config{}, world.Dependencies())
	if err != nil {
		b.Fatal(err)
	}
	body := strings.Repeat(`{"text":"`+strings.Repeat("x", 2000)+"\"}\n", 1000)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if a := serve(server, newRequest(http.MethodPost, "/v1/documents:batch", strings.NewReader(body))); a.status != http.StatusOK {
			b.Fatal(a.status)
		}
	}
}
