package native

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// row is a row of the fault matrix whose test stands in package e2e and runs here on the brokers and the store of this suite.
type row struct {
	number, test string
	always       bool // it is in the selection
}

// rows that are not about the brokers or the store themselves: those (7, 8, 13, 14, 15 and the cut connections of row 9)
// are tests of this package.
var rows = []row{
	{"01", "TestFaultEveryRoleKilledInLoops", true},
	{"02", "TestFaultKilledAtEveryPoint", true},
	{"03+26", "TestFaultZombie", true},
	{"04", "TestFaultScaledUpAndDown", true},
	{"05", "TestFaultEndedInMidBatch", true},
	{"06", "TestFaultAPIKilledBeforeTheReply", true},
	{"09", "TestFaultEmbedderAway", false},
	{"12", "TestFaultLocalStateLostDamagedOrOld", false},
	{"18", "TestFaultPoison", false},
	{"20", "TestFaultOvertakenVersions", false},
	{"22", "TestFaultReplays", true},
	{"27", "TestFaultRollingUpgrade", true},
	{"28", "TestFaultOffsetsLost", true},
	{"of Python", "TestForeignProducers", true},
}

// The rows run beside each other: what they do most is wait. Each must run and pass; one that is skipped has shown nothing.
func TestRows(t *testing.T) {
	needNative(t)
	binary := suiteBinary(suite.folder)
	if _, err := os.Stat(binary); err != nil {
		t.Fatal(err)
	}
	w := needWeaviate(t)
	for _, r := range rows {
		t.Run("row "+r.number+" "+strings.TrimPrefix(r.test, "Test"), func(t *testing.T) {
			length := "short"
			switch {
			case !r.always:
				needAll(t)
			case r.test == "TestFaultZombie" && all():
				length = "all" // every point, and a second look two minutes later
			}
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, binary, "-test.run", "^"+r.test+"$", "-test.v", "-test.timeout", "10m")
			cmd.Dir = ".." // where its files are
			cmd.Env = append(os.Environ(), "KAFKA_BROKERS="+strings.Join(suite.brokers.Addrs(), ","), "KAFKA_REPLICATION="+replication(),
				"WEAVIATE_URL="+w.url, "WEAVIATE_GRPC="+w.grpc, "E2E_SLOW="+cmp.Or(os.Getenv("E2E_SLOW"), "2"), "E2E_FAULTS="+length, "E2E_BINARY="+suite.binary, "E2E_FAULTS_BINARY="+suite.binary)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS: "+r.test+" ") {
				t.Fatalf("%s: %v\n%s", r.test, err, lastLines(string(out), 150))
			}
			for line := range strings.Lines(string(out)) {
				if strings.Contains(line, "I8:") || strings.Contains(line, "violations") {
					t.Log(strings.TrimSpace(line))
				}
			}
		})
	}
}

// suiteBinary is the compiled package e2e.
func suiteBinary(folder string) string { return filepath.Join(folder, "e2e.test") }

// replication of topics on the brokers of this suite.
func replication() string {
	if k, ok := suite.brokers.(killable); ok && k.Nodes() >= 3 {
		return "3"
	}
	return "1"
}
