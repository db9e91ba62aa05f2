package engine_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
)

// What a group has been given stands beside its journal, where its next process finds it.
func TestClaimsStandInTheDataFolder(t *testing.T) {
	w := newWorld(t)
	env := w.env("pod")
	env.Journal = t.TempDir() + "/running"
	for range 2 {
		stop := w.runIn(env, group(t, engine.Input(in, echo), engine.Table(countsCodec{}, mergeCounts)))
		w.send("k", "1")
		var claim struct {
			Instance string  `json:"instance"`
			Owned    []int32 `json:"owned"`
		}
		kafkatest.Wait(t, "the claim", func() bool {
			b, err := os.ReadFile(env.Journal + ".claims")
			return err == nil && json.Unmarshal(b, &claim) == nil
		})
		if want := []int32{0, 1}; claim.Instance != "pod" || !slices.Equal(claim.Owned, want) {
			t.Errorf("it claims %+v, want %v", claim, want)
		}
		stop()
		env.Stores = w.env("pod").Stores
		if err := os.WriteFile(env.Journal+".claims", []byte("damaged"), 0o600); err != nil { // no reason not to work
			t.Fatal(err)
		}
	}
}
