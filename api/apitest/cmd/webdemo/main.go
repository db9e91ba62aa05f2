// Command webdemo serves the API and its web page with made-up data, to look at while working on the page.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"time"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/api/apitest"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on")
	flag.Parse()
	if err := run(*listen); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(listen string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	server, err := api.New(api.Config{}, world(time.Now()).Dependencies())
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", ln.Addr())
	if err := server.Start(ln); err != nil {
		return err
	}
	<-ctx.Done()
	deadline, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return server.Shutdown(deadline)
}

func world(now time.Time) *apitest.World {
	w := apitest.NewWorld()
	texts := []string{
		"A lighthouse keeper writes down the weather every six hours. The log is read by ships that pass later in the week.",
		"The harbour freezes in January, and the ferry stays on the other side until the ice breaker has been through.",
		"Maps of the coast were drawn again after the storm of 1872, when the sandbank had moved by half a mile.",
	}
	for i := range 9 {
		at := now.Add(-time.Duration(i*i*7+i*20+4) * time.Second)
		w.AddIndexed(fmt.Sprintf("articles/18%02d_coast.txt", 40+7*i), apitest.Version(int64(100-i)), at, texts[:1+i%3]...)
	}
	inWork := func(id string, offset int64, at time.Time, work ledger.Work) {
		work.MessageID, work.At = "message-of-"+id, at
		w.Documents.Put(id, &ledger.DocumentRow{Work: map[rag.Revision]ledger.Work{{Version: apitest.Version(offset)}: work}})
	}
	inWork("reports/2026-spring.pdf", 120, now.Add(-2*time.Second), ledger.Work{Count: 48})
	inWork("reports/2025-winter.pdf", 119, now.Add(-8*time.Second), ledger.Work{Count: 31, RetryCause: 1, Failure: &rag.Failure{
		Stage: "embedder", Class: rag.ClassTransient, Reason: "embedder_refused", Message: "the service answered 500 for one of the texts"}})
	w.AddDead("scans/letter-of-1911.pdf", 91, now.Add(-3*time.Minute), rag.Failure{
		Stage: "chunker", Class: rag.ClassMessage, Reason: rag.ReasonNoText, Message: "the document is a scan: it has 3 pages and no text"}, []byte("%PDF-1.7"))
	w.AddDead("inbox/message-with-a-rather-long-name-that-somebody-gave-it-at-some-point.docx", 77, now.Add(-26*time.Hour), rag.Failure{
		Stage: "chunker", Class: rag.ClassMessage, Reason: rag.ReasonBrokenFile, Message: "word/document.xml: XML syntax error on line 214: unexpected EOF"}, []byte("PK"))
	w.AddDead("notes/empty.md", 60, now.Add(-50*time.Hour), rag.Failure{
		Stage: "indexer", Class: rag.ClassTransient, Reason: rag.ReasonAttemptsSpent, Message: "the store refused the object three times"}, []byte("#"))
	w.Stats.Counts = api.Stats{
		Documents:   map[rag.Status]int64{rag.StatusIndexed: 1204, rag.StatusUnchanged: 37, rag.StatusChunked: 12, rag.StatusRetrying: 1, rag.StatusDead: 3, rag.StatusDeleted: 5},
		DeadLetters: map[rag.LetterState]int64{rag.LetterWaiting: 3, rag.LetterScheduled: 1, rag.LetterResolved: 9},
		Lag:         map[string]int64{"chunker": 4, "embedder": 310, "indexer": 18}, Store: api.StoreStats{Chunks: 8915},
	}
	return w
}
