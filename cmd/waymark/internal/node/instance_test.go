package node

import (
	"log/slog"
	"os"
	"testing"

	"github.com/waymarkhq/waymark/config"
)

// An id that Kafka refuses would keep every role from joining, for ever.
func TestInstanceIDThatCannotBeUsed(t *testing.T) {
	n := &Node{cfg: &config.Config{DataDir: t.TempDir()}, log: slog.New(slog.DiscardHandler)}
	for _, damaged := range []string{"", "\n", "\xff\x00", "a b", "a/b"} {
		if err := os.WriteFile(n.path("instance-id"), []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		id, err := n.instanceID()
		if err != nil || !legalInstanceID.MatchString(id) {
			t.Errorf("%q became %q, %v", damaged, id, err)
		}
		if again, err := n.instanceID(); err != nil || again != id {
			t.Errorf("%q, then %q, %v", id, again, err)
		}
	}
}
