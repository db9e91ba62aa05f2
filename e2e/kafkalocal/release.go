package kafkalocal

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
)

// DefaultVersion is the release of Kafka that the tests mean.
const DefaultVersion = "4.4.0"

// pom names what a broker and its command-line tools need.
//
//go:embed pom.xml
var pom []byte

// Release is a release of Kafka on this machine. Make one with Fetch.
type Release struct {
	Version string
	Jars    string // folder of its jars
	Archive string // of its classes, made by Warm for one build of Java; used where it exists
}

// CacheDir is where releases are kept: $WAYMARK_CACHE, or waymark in the user's cache folder.
func CacheDir() (string, error) {
	if dir := os.Getenv("WAYMARK_CACHE"); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "waymark"), nil
}

// Fetch puts the jars of a release into the cache folder with Maven, unless they are there. Several processes may call it
// at once. The folder is named after the version and what was asked for.
func Fetch(ctx context.Context, cache, version string) (Release, error) {
	var r Release
	if java, err := exec.LookPath(javaCommand()); err != nil {
		return r, fmt.Errorf("kafkalocal: no Java: %w", err)
	} else if r.Archive, err = archiveName(ctx, java); err != nil {
		return r, err
	}
	dir := filepath.Join(cache, fmt.Sprintf("kafka-%s-%.4x", version, sha256.Sum256(pom)))
	r.Version, r.Jars, r.Archive = version, filepath.Join(dir, "jars"), filepath.Join(dir, r.Archive)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return r, err
	}
	unlock, err := lock(dir)
	if err != nil {
		return r, err
	}
	defer unlock()
	if _, err := os.Stat(r.Jars); err == nil {
		return r, nil
	}
	return r, r.download(ctx, dir)
}

// download lets Maven fill the folder of jars, which appears when it is complete.
func (r Release) download(ctx context.Context, dir string) error {
	part := r.Jars + ".part"
	pomFile := filepath.Join(dir, "pom.xml")
	if err := errors.Join(os.RemoveAll(part), os.WriteFile(pomFile, pom, 0o600)); err != nil {
		return err
	}
	mvn := exec.CommandContext(ctx, "mvn", "-q", "-B", "-f", pomFile, "-Dkafka.version="+r.Version,
		"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+part)
	if out, err := mvn.CombinedOutput(); err != nil {
		return fmt.Errorf("kafkalocal: fetching the jars of Kafka %s: %w\n%s", r.Version, err, out)
	}
	return os.Rename(part, r.Jars)
}

func lock(dir string) (unlock func(), err error) {
	l := flock.New(filepath.Join(dir, "lock"))
	if err := l.Lock(); err != nil {
		return nil, fmt.Errorf("kafkalocal: %w", err)
	}
	return func() { _ = l.Unlock() }, nil // the lock ends with the process anyway
}

func javaCommand() string {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		return filepath.Join(home, "bin", "java")
	}
	return "java"
}

// archiveName is that of the archive for this build of Java: every other build ignores it.
func archiveName(ctx context.Context, java string) (string, error) {
	out, err := exec.CommandContext(ctx, java, "-Xshare:auto", "-Xinternalversion").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kafkalocal: %s: %w\n%s", java, err, bytes.TrimSpace(out))
	}
	return fmt.Sprintf("classes-%.4x.jsa", sha256.Sum256(out)), nil
}

// Warm makes the archive of Kafka's classes, already parsed and checked, that every JVM started later maps: it saves 40 % of
// the time to start. It does nothing if the archive is there.
func (r Release) Warm(ctx context.Context) error {
	unlock, err := lock(filepath.Dir(r.Jars))
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(r.Archive); err == nil {
		return nil
	}
	dir, err := os.MkdirTemp("", "kafkalocal")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	part := r.Archive + ".part"
	if err := r.record(ctx, filepath.Join(dir, "warm"), part); err != nil {
		return err
	}
	return os.Rename(part, r.Archive)
}

// record runs a node with all that nodes may have and lets the JVM write down what it has loaded.
func (r Release) record(ctx context.Context, dir, archive string) (err error) {
	c, err := New(ctx, Options{Release: r, Dir: dir, TLS: true, Users: map[string]string{"user": "password"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Clean()) }()
	if err := c.launch(ctx, 1, dumpFlag+archive); err != nil {
		return err
	}
	if err := c.WaitReady(ctx); err != nil {
		return err
	}
	return c.StopNode(1)
}

const dumpFlag = "-XX:ArchiveClassesAtExit="

// toolHeapMB is enough for Kafka's command-line tools.
const toolHeapMB = 64

// java is a JVM made to start fast and stay small rather than to run fast for hours.
func (r Release) java(ctx context.Context, flags []string, heapMB int, args ...string) *exec.Cmd {
	jars, _ := filepath.Glob(filepath.Join(r.Jars, "*.jar")) // sorted: the archive wants the same order
	dumps := len(flags) > 0 && strings.HasPrefix(flags[0], dumpFlag)
	all := append([]string{
		"-cp", strings.Join(jars, ":"),
		"-Xmx" + strconv.Itoa(heapMB) + "m",
		"-XX:+UseSerialGC",
		"-XX:TieredStopAtLevel=1",
		"-XX:-UsePerfData",
		"-XX:+ExitOnOutOfMemoryError",
		"-Djava.awt.headless=true",
	}, flags...)
	if _, err := os.Stat(r.Archive); err == nil && !dumps {
		all = append(all, "-XX:SharedArchiveFile="+r.Archive)
	}
	all = append(all, "-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr")
	cmd := exec.CommandContext(ctx, javaCommand(), append(all, args...)...)
	cmd.Env = append(os.Environ(), "MALLOC_ARENA_MAX=2") // keeps glibc from holding 64 MiB a thread
	return cmd
}

// Tools that come with Kafka, by the class that Tool runs.
const (
	ConsoleProducer = "org.apache.kafka.tools.ConsoleProducer"
	ConsoleConsumer = "org.apache.kafka.tools.consumer.ConsoleConsumer"
	Topics          = "org.apache.kafka.tools.TopicCommand"
	ACLs            = "org.apache.kafka.tools.AclCommand"
	ConsumerGroups  = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
)

// Tool is a run of one of Kafka's own command-line tools; the caller starts it. It ends with ctx.
func (r Release) Tool(ctx context.Context, class string, args ...string) *exec.Cmd {
	return r.java(ctx, []string{"-Dorg.apache.logging.log4j.level=WARN"}, 2*toolHeapMB, append([]string{class}, args...)...)
}
