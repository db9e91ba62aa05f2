package native

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/e2e/checker"
)

// composeVariable lets the tests of docker-compose.yml run, alone: they need a Docker engine and the images that
// e2e/images/build.sh makes, or those that can be pulled.
const composeVariable = "E2E_COMPOSE"

// project is docker-compose.yml as it runs for one test.
type project struct {
	t    *testing.T
	name string
	args []string // of every call
	env  []string

	broker, store string // as they are reached from this machine
}

// newProject names a project whose ports are free. Everything of it is removed with the test.
func newProject(t *testing.T, name string, args ...string) *project {
	t.Helper()
	if os.Getenv(composeVariable) == "" {
		t.Skip("NOT RUN: " + composeVariable + " is not set; `make e2e-compose` sets it")
	}
	p := &project{t: t, name: name, args: append([]string{"compose", "--file", "../../docker-compose.yml", "--file", "testdata/published.yml"}, args...)}
	kafka, store := p.port(), p.port()
	p.broker, p.store = "localhost:"+kafka, "http://127.0.0.1:"+store
	p.env = []string{"COMPOSE_PROJECT_NAME=" + name, "WAYMARK_FILES=prebuilt", "WAYMARK_PORT=" + p.port(), "KAFKA_PORT=" + kafka, "WEAVIATE_PORT=" + store, "KAFKA_PORT_2=" + p.port(), "KAFKA_PORT_3=" + p.port()}
	p.compose("down", "--volumes", "--timeout", "2") // of a run that was ended before it could
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s", lastLines(p.compose("logs", "--no-color", "--tail", "15"), 200))
		}
		p.compose("down", "--volumes", "--timeout", "2")
	})
	return p
}

func (p *project) port() string {
	p.t.Helper()
	at, err := freeAddress()
	if err != nil {
		p.t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		p.t.Fatal(err)
	}
	return port
}

func lastLines(s string, n int) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// compose runs a command and returns what it prints.
func (p *project) compose(args ...string) string {
	p.t.Helper()
	return p.docker(append(p.args[:len(p.args):len(p.args)], args...)...)
}

func (p *project) docker(args ...string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Env = append(os.Environ(), p.env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		p.t.Errorf("docker %s: %v\n%s", strings.Join(args, " "), err, lastLines(errs.String(), 30))
	}
	return strings.TrimSpace(out.String())
}

// up brings everything up and waits until all are healthy.
func (p *project) up(args ...string) {
	p.t.Helper()
	began := time.Now()
	p.compose(append([]string{"up", "--detach", "--no-build", "--wait", "--wait-timeout", "240"}, args...)...)
	if p.t.Failed() {
		p.t.FailNow()
	}
	p.t.Logf("up and healthy after %s", time.Since(began).Round(10*time.Millisecond))
}

func (p *project) container(service string) string {
	p.t.Helper()
	return strings.Fields(p.compose("ps", "--quiet", service))[0]
}

// kill ends the process of a service as a crash does; the engine starts it again.
func (p *project) kill(service string) {
	p.t.Helper()
	pid, err := strconv.Atoi(p.docker("inspect", "--format", "{{.State.Pid}}", p.container(service)))
	if err != nil || pid <= 1 {
		p.t.Fatalf("%s has the pid %d (%v)", service, pid, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		p.t.Fatal(err)
	}
}

// restarts is how often the engine has started a service again.
func (p *project) restarts(service string) int {
	p.t.Helper()
	n, err := strconv.Atoi(p.docker("inspect", "--format", "{{.RestartCount}}", p.container(service)))
	if err != nil {
		p.t.Error(err)
	}
	return n
}

// pods asks the API of the project, a broker and the store.
func (p *project) pods() *pods {
	p.t.Helper()
	var at string
	for _, e := range p.env {
		if port, ok := strings.CutPrefix(e, "WAYMARK_PORT="); ok {
			at = "127.0.0.1:" + port
		}
	}
	suite.store = &weaviate{url: p.store}
	suite.brokers = givenBrokers{p.broker}
	pods := &pods{t: p.t, name: "waymark", class: "Chunk", apiAt: at, api: checker.API{Base: "http://" + at, Client: &http.Client{Timeout: 30 * time.Second}, Patience: time.Minute}}
	pods.sent.Timeout = 30 * time.Second
	return pods
}

// The compose file comes up; a hundred articles flow while the process of every service is killed; each is indexed, once
// and whole, and found by its vectors.
func TestComposeSurvivesKills(t *testing.T) {
	c := newProject(t, "waymark-kills")
	c.up()
	p := c.pods()
	p.waitReady()
	docs, m := articles(t, 100), newModel()
	sent := p.putAll(m, docs, 100*time.Millisecond)
	services := []string{"chunker", "embedder", "indexer", "tracker", "deadletters", "api", "weaviate", "kafka-1"}
	for _, service := range services {
		pause(time.Duration(500+rand.IntN(1000)) * time.Millisecond)
		c.kill(service)
	}
	sent()
	p.check(m)
	p.putByReference()
	for _, service := range services {
		if n := c.restarts(service); n == 0 {
			t.Errorf("%s was killed and not started again", service)
		}
	}
	began := time.Now()
	c.compose("stop", "indexer")
	if code := c.docker("inspect", "--format", "{{.State.ExitCode}}", strings.Fields(c.compose("ps", "--all", "--quiet", "indexer"))[0]); code != "0" {
		t.Errorf("a stopped indexer ends with %s after %s", code, time.Since(began))
	}
	t.Logf("the indexer stopped in %s", time.Since(began).Round(10*time.Millisecond))
	c.checkConfinement(append(services, "topics"))
	for _, role := range []string{"api", "chunker"} {
		if !strings.Contains(c.compose("logs", role), "every record is on one broker only") {
			t.Errorf("%s does not say that there is one broker only", role)
		}
	}
}

// putByReference submits a document that no record in Kafka takes: its content goes through the folder that services share.
func (p *pods) putByReference() {
	p.t.Helper()
	page := "<p>What this page says is short.</p><!--" + strings.Repeat("and what it does not is long ", 9<<20/28) + "-->"
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPut, p.api.Base+"/v1/documents/page", strings.NewReader(page))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "text/html")
	req.Header.Set("Idempotency-Key", "page-1")
	res, err := p.sent.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	if answer, err := io.ReadAll(res.Body); res.StatusCode != http.StatusAccepted || err != nil {
		p.t.Fatalf("a document of %d bytes: %d %s, %v", len(page), res.StatusCode, answer, err)
	}
	if got := p.final("page", "page-1"); got.Status != "indexed" || got.Chunks != 1 {
		p.t.Errorf("a document of %d bytes is %s, %d chunks: %+v", len(page), got.Status, got.Chunks, got.Error)
	}
}

// checkConfinement: what a container may use is limited, those of the product have no rights, and the image is small.
func (p *project) checkConfinement(services []string) {
	p.t.Helper()
	for _, service := range services {
		id := strings.Fields(p.compose("ps", "--all", "--quiet", service))[0]
		limits := p.docker("inspect", "--format", "{{gt .HostConfig.Memory 0}} {{.HostConfig.PidsLimit}}", id)
		if limited := strings.Fields(limits); limited[0] != "true" || limited[1] == "<nil>" || limited[1] == "0" {
			p.t.Errorf("%s has the limits %s", service, limits)
		}
		if service == "weaviate" || strings.HasPrefix(service, "kafka") {
			continue
		}
		if user := p.docker("inspect", "--format", "{{.Config.User}} {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}}", id); user != "65532:65532 true [ALL]" {
			p.t.Errorf("%s runs as %s", service, user)
		}
	}
	size, err := strconv.Atoi(p.docker("image", "inspect", "--format", "{{.Size}}", "waymark:local"))
	if err != nil || size > 120<<20 {
		p.t.Errorf("the image has %d bytes (%v)", size, err)
	}
	p.t.Logf("the image has %d MB", size>>20)
}

// Three brokers, and more of a role: a broker dies while documents flow, and comes back.
func TestComposeThreeBrokersAndScale(t *testing.T) {
	c := newProject(t, "waymark-three", "--env-file", "../../deploy/three-brokers.env")
	c.up("--scale", "indexer=2", "--scale", "embedder=3")
	p := c.pods()
	p.waitReady()
	l := p.startLoad(60, 50*time.Millisecond)
	if n := len(strings.Fields(c.compose("ps", "--quiet", "embedder"))); n != 3 {
		t.Errorf("%d embedders run", n)
	}
	for _, broker := range []string{"kafka-2", "kafka-3"} {
		l.await(20)
		c.kill(broker)
		l.await(20)
		eventually(t, broker+" to be healthy again", func() error {
			if c.restarts(broker) == 0 {
				return errors.New("it was not started again")
			}
			if state := c.docker("inspect", "--format", "{{.State.Health.Status}}", c.container(broker)); state != "healthy" {
				return fmt.Errorf("it is %s", state)
			}
			return nil
		})
	}
	c.compose("up", "--detach", "--no-build", "--scale", "indexer=1", "--scale", "embedder=1")
	l.await(20)
	p.check(l.end())
	if strings.Contains(c.compose("logs", "chunker"), "every record is on one broker only") {
		t.Error("it says that there is one broker only")
	}
}
