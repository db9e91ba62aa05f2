package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
)

// child tells a process of this test's binary that it is the application.
const child = "PAYMENTS_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(child) == "" {
		os.Exit(m.Run())
	}
	if err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// application runs the application in a process of its own, and kills it once it has written so many lines. It returns what
// was written, and whether the process came to its end by itself.
func application(t *testing.T, dir string, lines int) (output []string, ended bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-data-dir", dir, "-count", "120", "-seed", "7", "-interval", "2ms", "-hold-for", "400ms")
	cmd.Env = append(os.Environ(), child+"=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	scan := bufio.NewScanner(stdout)
	for len(output) < lines && scan.Scan() {
		output = append(output, scan.Text())
	}
	if len(output) >= lines {
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		return output, false
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the application ended with %v\n%s\n%s", err, strings.Join(output, "\n"), stderr.String())
	}
	return output, true
}

// model says what the balances must be, from the log of payments alone, and which payments count. It shares no code with the
// ledger.
func model(log []kafka.Record) (balances map[string]int64, counted map[string]bool) {
	balances, counted = map[string]int64{}, map[string]bool{}
	held, onHold := map[string]int64{}, map[string]int64{} // by hold, by account
	for _, rec := range log {
		var p struct {
			ID, Kind, Hold string
			Amount         int64
		}
		if json.Unmarshal(rec.Value, &p) != nil || p.Kind == "" {
			continue
		}
		account := string(rec.Key)
		id, hold := account+"/"+p.ID, account+"/"+p.Hold
		if counted[id] {
			continue
		}
		counted[id] = true
		enough := balances[account]-onHold[account] >= p.Amount
		switch {
		case p.Kind == "deposit":
			balances[account] += p.Amount
		case p.Kind == "payment" && enough:
			balances[account] -= p.Amount
		case p.Kind == "hold" && enough:
			held[id] = p.Amount
			onHold[account] += p.Amount
		case p.Kind == "capture":
			balances[account] -= held[hold]
			fallthrough
		case p.Kind == "release":
			onHold[account] -= held[hold]
			delete(held, hold)
		}
	}
	return balances, counted
}

// The application, its broker included, is killed again and again; clients send everything again after each kill. In the end
// every payment has counted exactly once.
func TestKilledAtAnyTime(t *testing.T) {
	kills := 8
	if testing.Short() {
		kills = 3
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	var output []string
	for killed := 0; killed < kills; {
		lines, ended := application(t, dir, 1+rng.IntN(160))
		output = append(output, lines...)
		if !ended {
			killed++
		}
	}
	last, ended := application(t, dir, 1<<30)
	if !ended {
		t.Fatal("the last run did not end")
	}
	for _, d := range []string{"duplicate", "redelivery"} {
		if n := strings.Count(strings.Join(append(output, last...), "\n"), d+" recognised:"); n == 0 {
			t.Errorf("no %s was recognised: the kills have tested nothing", d)
		} else {
			t.Logf("%d times a %s was recognised", n, d)
		}
	}
	cfg := kafkatest.StartIn(t, filepath.Join(dir, "broker")).Config()
	log := kafkatest.ReadAll(t, cfg, topics().Payments.Name)
	want, counted := model(log)
	checkEntries(t, kafkatest.ReadAll(t, cfg, topics().Entries.Name), want, counted)
	checkTable(t, kafkatest.ReadAll(t, cfg, "payments-ledger-table"), want)
	checkLetters(t, log, kafkatest.ReadAll(t, cfg, topics().DeadLetters.Name))
	checkAlerts(t, kafkatest.ReadAll(t, cfg, topics().Alerts.Name))
}

// checkEntries: every payment has an entry, all entries of a payment are the same, and the last ones say the balances.
func checkEntries(t *testing.T, records []kafka.Record, want map[string]int64, counted map[string]bool) {
	t.Helper()
	first, got, seen := map[string]string{}, map[string]int64{}, map[string]bool{}
	for _, rec := range records {
		var e Entry
		if err := json.Unmarshal(rec.Value, &e); err != nil {
			t.Fatal(err)
		}
		id := string(rec.Key) + "/" + e.ID
		if seen[id] && first[id] != string(rec.Value) {
			t.Errorf("two entries of one payment differ:\n%s\n%s", first[id], rec.Value)
		}
		seen[id], first[id], got[string(rec.Key)] = true, string(rec.Value), e.Balance
	}
	if !maps.Equal(got, want) {
		t.Errorf("the balances are %v, the model says %v", got, want)
	}
	if !maps.Equal(seen, counted) {
		t.Errorf("%d payments have entries, %d should have", len(seen), len(counted))
	}
}

// checkTable: so do the rows, read as the next owner of the partition would read them.
func checkTable(t *testing.T, records []kafka.Record, want map[string]int64) {
	t.Helper()
	codec, rules := rows[AccountRow](time.Now), options{}.ledger().Rules
	table := map[string]*AccountRow{}
	for _, rec := range records {
		row, err := codec.Decode(rec.Value)
		if err != nil {
			t.Fatal(err)
		}
		table[string(rec.Key)] = rules.Merge(table[string(rec.Key)], &row)
	}
	got := map[string]int64{}
	for account, row := range table {
		if got[account] = row.State.Balance; len(row.State.Holds) > 0 {
			t.Errorf("%s still has holds: %v", account, row.State.Holds)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("the rows say %v, the model %v", got, want)
	}
}

// checkLetters: each broken record, and nothing else, has a letter with its bytes.
func checkLetters(t *testing.T, log, letters []kafka.Record) {
	t.Helper()
	broken := func(records []kafka.Record) map[string]bool {
		m := map[string]bool{}
		for _, rec := range records {
			if v := string(rec.Value); v == "hello?" || strings.Contains(v, "amuont") {
				m[fmt.Sprintf("%s %s", rec.Key, v)] = true
			}
		}
		return m
	}
	if got, want := broken(letters), broken(log); !maps.Equal(got, want) || len(want) == 0 {
		t.Errorf("the letters are %v, want %v", got, want)
	}
	for _, l := range letters {
		if len(broken([]kafka.Record{l})) == 0 {
			t.Errorf("a good payment is dead: %s", l.Value)
		}
	}
}

// checkAlerts: alerts that were sent again say the same.
func checkAlerts(t *testing.T, records []kafka.Record) {
	t.Helper()
	first := map[string]string{}
	for _, rec := range records {
		var a Alert
		if err := json.Unmarshal(rec.Value, &a); err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprintf("%s/%s/%s", rec.Key, a.ID, a.Rule)
		if was := first[id]; was != "" && was != string(rec.Value) {
			t.Errorf("two alerts differ:\n%s\n%s", was, rec.Value)
		}
		first[id] = string(rec.Value)
	}
	if len(first) == 0 {
		t.Error("nobody was alarmed")
	}
}
