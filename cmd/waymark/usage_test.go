package main

import (
	"encoding/json"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/waymarkhq/waymark/cmd/waymark/internal/console"
	"github.com/waymarkhq/waymark/config"
)

// commands are the paths of all commands.
func commands(t *testing.T) []string {
	t.Helper()
	parser, err := newParser(newCLI(), &environment{console: console.New(console.Pipe(&buffer{}), console.Pipe(&buffer{}))})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	if err := kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if n, ok := node.(*kong.Node); ok && n.Type == kong.CommandNode {
			paths = append(paths, strings.TrimPrefix(n.FullPath(), "waymark "))
		}
		return next(nil)
	}); err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestHelpOfEveryCommand(t *testing.T) {
	for _, path := range append(commands(t), "") {
		s := command(append(strings.Fields(path), "--help")...)
		if code := s.do(t); code != 0 || s.err.String() != "" {
			t.Errorf("%q: exit code %d, errors %q", path, code, s.err.String())
		}
		golden(t, "help/"+strings.TrimSuffix("waymark-"+strings.ReplaceAll(path, " ", "-"), "-"), s.out.String())
	}
}

func TestEveryCommandOfTheInterfaceExists(t *testing.T) {
	have := strings.Join(commands(t), ",")
	want := "up,run,broker,topics,topics plan,topics apply,ingest,delete,status,search,dlq,dlq list,dlq show,dlq replay,dlq discard,dlq export,parse,split,blobs,blobs collect,verify,config,config print,config validate,version"
	if have != want {
		t.Errorf("got  %s\nwant %s", have, want)
	}
}

func TestNoArguments(t *testing.T) {
	s := command()
	if code := s.do(t); code != exitUsage || !strings.HasPrefix(s.out.String(), "Usage: waymark <command>") {
		t.Errorf("exit code %d, output %q", code, s.out.String())
	}
}

func TestWrongUsage(t *testing.T) {
	folder(t, map[string]string{"docs/a": "", "empty-token": "\n", "bad.yaml": "kafka: {epohc: 1}\n"})
	for line, want := range map[string]string{
		"serch":                                   "unexpected argument serch, did you mean \"search\"?\nRun 'waymark --help' for help.",
		"search":                                  "expected \"<query> ...\"\nRun 'waymark search --help' for help.",
		"search -k 0 x":                           "search: -k: 0 is not between 1 and 1000\nRun 'waymark search --help' for help.",
		"search --filter en x":                    "search: --filter: \"en\" is not written key:value\nRun 'waymark search --help' for help.",
		"search --mode magic x":                   "--mode must be one of \"hybrid\",\"vector\",\"text\" but got \"magic\"\nRun 'waymark search --help' for help.",
		"status --list dead x":                    "status: --list stands alone\nRun 'waymark status --help' for help.",
		"status --message m a b":                  "status: --message takes one document id at most\nRun 'waymark status --help' for help.",
		"status --limit=-1 --list all":            "status: --limit: -1 is below 0\nRun 'waymark status --help' for help.",
		"dlq":                                     "expected one of \"list\", \"show\", \"replay\", \"discard\", \"export\"\nRun 'waymark dlq --help' for help.",
		"dlq replay":                              "dlq replay: name dead letters, or say --all\nRun 'waymark dlq replay --help' for help.",
		"dlq replay --all x":                      "dlq replay: name dead letters, or say --all\nRun 'waymark dlq replay --help' for help.",
		"dlq replay --reason r x":                 "dlq replay: --reason, --stage, --document, --since and --until go with --all\nRun 'waymark dlq replay --help' for help.",
		"dlq discard --since 2h --why y x":        "dlq discard: --reason, --stage, --document, --since and --until go with --all\nRun 'waymark dlq discard --help' for help.",
		"dlq discard --why y":                     "dlq discard: name dead letters, or say --all\nRun 'waymark dlq discard --help' for help.",
		"dlq list --since yesterday":              "--since: \"yesterday\" is neither a time as of RFC 3339, such as 2026-01-02T15:04:05Z, nor a duration such as 2h\nRun 'waymark dlq list --help' for help.",
		"dlq export --until=-2h":                  "--until: \"-2h\" is below 0\nRun 'waymark dlq export --help' for help.",
		"dlq list --since 1h --until 2h":          "--until: it is not after --since",
		"dlq list --limit=-1":                     "dlq list: --limit: -1 is below 0\nRun 'waymark dlq list --help' for help.",
		"ingest docs --id x":                      "ingest: --id is for standard input alone: waymark ingest --id x -\nRun 'waymark ingest --help' for help.",
		"ingest docs --concurrency 65":            "ingest: --concurrency: 65 is not between 1 and 64\nRun 'waymark ingest --help' for help.",
		"ingest none":                             "none: no such file or directory",
		"ingest docs --api 127.0.0.1:1":           "--api: \"127.0.0.1:1\" is not a URL such as http://127.0.0.1:8484",
		"ingest docs --api-token-file none":       "--api-token-file: open none: no such file or directory",
		"status --api-token-file empty-token":     "--api-token-file: empty-token is empty",
		"status --config bad.yaml":                "configuration: bad.yaml:1: kafka.epohc: unknown key; did you mean epoch?",
		"up --watch":                              "up: --watch needs paths to follow\nRun 'waymark up --help' for help.",
		"up --watch -":                            "up: --watch cannot follow standard input\nRun 'waymark up --help' for help.",
		"up --watch --exit-when-idle docs":        "up: --watch and --exit-when-idle contradict each other\nRun 'waymark up --help' for help.",
		"up --splitting.tokens=1 --listen :1":     "configuration: 2 problems\n  --splitting.tokens: 1 is not between 16 and 8192\n  --api.listen: :1 can be reached from other machines: set api.tokens, or say --insecure",
		"up --kafka.sasl.password x":              "unknown flag --kafka.sasl.password, did you mean \"--kafka.sasl.password_file\"?\nRun 'waymark up --help' for help.",
		"up --api.tokens x":                       "unknown flag --api.tokens\nRun 'waymark up --help' for help.",
		"run":                                     "expected \"<role> ...\"\nRun 'waymark run --help' for help.",
		"run baker":                               "<role> ... must be one of \"api\",\"chunker\",\"embedder\",\"indexer\",\"tracker\",\"deadletters\" but got \"baker\"\nRun 'waymark run --help' for help.",
		"run chunker chunker":                     "run: the role chunker is there twice\nRun 'waymark run --help' for help.",
		"run chunker":                             "configuration: kafka.brokers: must be named: `run` works on a cluster (only `up` brings a broker of its own)",
		"topics plan":                             "configuration: kafka.brokers: must be named: `topics` works on a cluster (only `up` brings a broker of its own)",
		"broker --broker.listen=0.0.0.0:1":        "configuration: --broker.listen: 0.0.0.0:1 can be reached from other machines and the embedded broker knows no login: say --insecure if that is meant",
		"config validate --data-dir= --for=run":   "configuration: 3 problems\n  --data-dir: data_dir: must name a folder\n  kafka.brokers: must be named: `run` works on a cluster (only `up` brings a broker of its own)\n  store.path: must name the SQLite file that the roles share",
		"version --log-level=loud":                "--log-level must be one of \"\",\"debug\",\"info\",\"warn\",\"error\" but got \"loud\"\nRun 'waymark version --help' for help.",
		"dlq export --output docs --api http://x": "--output: open docs: file exists",
	} {
		s := command(strings.Fields(line)...)
		if code := s.do(t); code != exitUsage {
			t.Errorf("%s: exit code %d, want %d", line, code, exitUsage)
		}
		if got := strings.TrimPrefix(strings.TrimSuffix(s.err.String(), "\n"), "waymark: "); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", line, got, want)
		}
		if s.out.String() != "" {
			t.Errorf("%s wrote to standard output: %q", line, s.out.String())
		}
	}
}

func TestConfigCommands(t *testing.T) {
	folder(t, map[string]string{"w.yaml": "splitting:\n  tokens: 100\n"})
	s := command("config", "validate", "--config", "w.yaml")
	if code := s.do(t); code != 0 || s.out.String() != "The configuration is valid for 'up'.\n" {
		t.Errorf("exit code %d, output %q", code, s.out.String())
	}
	s = command("config", "validate", "--json", "--for=run", "--roles=chunker,tracker", "--kafka.brokers=a:1")
	if code := s.do(t); code != 0 || s.out.String() != "{\"valid\":true}\n" {
		t.Errorf("exit code %d, output %q %s", code, s.out.String(), s.err.String())
	}
	s = command("config", "print", "--config", "w.yaml", "--listen", "127.0.0.1:1", "--data-dir", "/data")
	s.environ = []string{"WAYMARK_EMBEDDING_BATCH=7", "HOME=/root", "WAYMARK_API=http://x"}
	if code := s.do(t); code != 0 {
		t.Errorf("exit code %d: %s", code, s.err.String())
	}
	for _, want := range []string{"\n  tokens: 100 # w.yaml:2\n", "\n  batch: 7 # WAYMARK_EMBEDDING_BATCH\n", "\n  listen: 127.0.0.1:1 # --api.listen\n", "data_dir: /data # --data-dir\n"} {
		if !strings.Contains(s.out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, s.out.String())
		}
	}
	s = command("config", "print", "--json")
	var values map[string]any
	if code := s.do(t); code != 0 || json.Unmarshal([]byte(s.out.String()), &values) != nil || values["data_dir"] != "./waymark-data" {
		t.Errorf("exit code %d, output %s", code, s.out.String())
	}
}

// Every key of the configuration that is not a secret is a flag of every command that reads it.
func TestEveryKeyIsAFlag(t *testing.T) {
	values := map[string]string{"number": "7", "true|false": "true", "duration": "7s", "list": "x:7"}
	for _, f := range config.Fields() {
		flags := newConfigFlags()
		type holder struct {
			Configuration configFlags `embed:""`
		}
		h := &holder{flags}
		parser, err := kong.New(h)
		if err != nil {
			t.Fatal(err)
		}
		value, ok := values[f.Form]
		if !ok {
			value = "seven"
		}
		_, err = parser.Parse([]string{"--" + f.FlagName() + "=" + value})
		if f.Secret() {
			if err == nil {
				t.Errorf("%s is a flag, but a secret", f.Key)
			}
			continue
		}
		if err != nil || len(flags.values()) != 1 || flags.values()[f.Key] != value {
			t.Errorf("%s: got %v, %v", f.Key, flags.values(), err)
		}
	}
}

func TestVersion(t *testing.T) {
	for want, tc := range map[string]struct {
		info *debug.BuildInfo
		args []string
	}{
		"waymark v1.2.3\ncommit  abc (modified)\ngo      go1.26.0\n": {&debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v1.2.3"},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}}, nil},
		"waymark devel\ncommit  unknown\ngo      go1.26.0\n": {&debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "(devel)"}}, nil},
	} {
		out := &buffer{}
		e := &environment{console: console.New(console.Pipe(out), console.Pipe(out)), globals: &globals{}}
		if err := e.showVersion(versionOf(tc.info)); err != nil || out.String() != want {
			t.Errorf("got %q, %v, want %q", out.String(), err, want)
		}
	}
	s := command("version", "--json")
	var v version
	if code := s.do(t); code != 0 || json.Unmarshal([]byte(s.out.String()), &v) != nil || !strings.HasPrefix(v.Go, "go1.") {
		t.Errorf("exit code %d, output %q", code, s.out.String())
	}
}

func TestLogs(t *testing.T) {
	for _, tc := range []struct {
		args  []string
		width int
		want  string
	}{
		{[]string{"up"}, 0, "level=INFO"}, {[]string{"up"}, 80, ""}, {[]string{"up", "--log-level=info"}, 80, "level=INFO"},
		{[]string{"up", "--log-format=json"}, 0, `"level":"INFO"`}, {[]string{"up", "--log-level=error"}, 0, ""},
	} {
		t.Chdir(t.TempDir())
		s := command(tc.args...)
		s.width, s.runtime = tc.width, &fakeRuntime{}
		code := s.start(t)
		eventually(t, "ready", func() bool { return strings.Contains(s.out.String(), "ready") })
		s.signal(errInterrupted)
		if c := s.wait(t, code); c != 0 {
			t.Errorf("%q: exit code %d", tc.args, c)
		}
		if got := s.err.String(); strings.Contains(got, "hello from the runtime") != (tc.want != "") || !strings.Contains(got, tc.want) {
			t.Errorf("%q: logs %q, want %q", tc.args, got, tc.want)
		}
	}
}

func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatalf("this test needs /dev/full: %v", err)
	}
	defer full.Close()
	errs := &buffer{}
	e := &environment{console: console.New(console.Pipe(full), console.Pipe(errs)), getenv: os.Getenv}
	if code := run(t.Context(), []string{"version"}, e); code != exitFailed || !strings.Contains(errs.String(), "no space left") {
		t.Errorf("exit code %d, errors %q", code, errs.String())
	}
}
