package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/config"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestPrintGolden(t *testing.T) {
	golden, err := filepath.Abs("testdata/print.golden")
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, "splitting:\n  tokens: 100\napi: {tokens: [\"ci:ingest+read:"+hash+"\"]}\n")
	c := mustLoad(t, config.Sources{
		File: file, Environ: []string{"WAYMARK_KAFKA_BROKERS=a:1,b:2"}, Flags: map[string]string{"data_dir": "/var/lib/waymark"},
	}, up)
	var out bytes.Buffer
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}

// What is printed can be loaded again and is the same configuration.
func TestPrintRoundTrip(t *testing.T) {
	file := write(t, "")
	rapid.Check(t, func(t *rapid.T) {
		flags := map[string]string{
			"kafka.topic_prefix":    rapid.StringMatching(`[a-z0-9_-]{1,20}`).Draw(t, "prefix"),
			"kafka.epoch":           rapid.StringMatching(`[1-7][0-9]{0,3}`).Draw(t, "epoch"),
			"data_dir":              rapid.StringMatching(`[a-z./: #'"-]{1,20}`).Draw(t, "dir"),
			"delivery.backoff.max":  time.Duration(rapid.Int64Range(int64(time.Second), int64(time.Hour)).Draw(t, "max")).String(),
			"delivery.view_lag":     time.Duration(rapid.Int64Range(1e8, 29e9).Draw(t, "lag")).String(),
			"kafka.brokers":         strings.Join(rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,9}:[1-9][0-9]{0,3}`), 0, 4, rapid.ID).Draw(t, "brokers"), ","),
			"splitting.tokens":      rapid.StringMatching(`[1-7][0-9]{2,3}`).Draw(t, "tokens"),
			"embedding.kind":        "builtin",
			"kafka.tls.server_name": "",
		}
		first, err := config.Load(config.Sources{Flags: flags}, up)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := first.Print(&out); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		second, err := config.Load(config.Sources{File: file}, up)
		if err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		if got, want := jsonOf(t, second), jsonOf(t, first); !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
	})
}

func jsonOf(t interface{ Fatal(...any) }, c *config.Config) map[string]any {
	var out bytes.Buffer
	if err := c.PrintJSON(&out); err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(out.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFields(t *testing.T) {
	names := map[string]bool{}
	for _, f := range config.Fields() {
		if f.Help == "" || !strings.HasSuffix(f.Help, ".") {
			t.Errorf("%s: the help %q is not a sentence", f.Key, f.Help)
		}
		if names[f.Variable()] {
			t.Errorf("two fields have the variable %s", f.Variable())
		}
		names[f.Variable()] = true
	}
	for _, want := range []string{"WAYMARK_KAFKA_BROKERS", "WAYMARK_DATA_DIR", "WAYMARK_DELIVERY_BACKOFF_INITIAL", "WAYMARK_API_TOKENS"} {
		if !names[want] {
			t.Errorf("there is no %s", want)
		}
	}
}

// Every field can be given in each of the ways, and says so.
func TestEveryFieldIsReadFromEverySource(t *testing.T) {
	texts := map[string]string{"number": "7", "true|false": "true", "duration": "7s", "list": "x:7", "text": "seven", "secret": "x:read:" + hash}
	file := write(t, "")
	anything := config.Target{Command: "none"}
	for _, f := range config.Fields() {
		text, ok := texts[f.Form]
		if !ok {
			text = texts["text"]
		}
		check := func(src config.Sources, origin string) {
			t.Helper()
			c, err := config.Load(src, anything)
			if err == nil && c.OriginOf(f.Key).String() != origin {
				t.Errorf("%s comes from %q, want %q", f.Key, c.OriginOf(f.Key), origin)
			}
			for _, p := range listOf(err) {
				if p.Origin.String() != origin && p.Origin != (config.Origin{}) {
					t.Errorf("%s from %s: %v", f.Key, origin, p)
				}
				if strings.Contains(p.Message, "unknown") || strings.Contains(p.Message, "is not a whole") || strings.Contains(p.Message, "is not a duration") {
					t.Errorf("%s from %s: %v", f.Key, origin, p)
				}
			}
		}
		check(config.Sources{Environ: []string{f.Variable() + "=" + text}}, f.Variable())
		if f.Secret() {
			continue
		}
		check(config.Sources{Flags: map[string]string{f.Key: text}}, "--"+f.FlagName())
		if f.Form == "list" {
			text = "[" + text + "]"
		}
		yaml := "{" + strings.ReplaceAll(f.Key, ".", ": {") + ": " + text + strings.Repeat("}", strings.Count(f.Key, ".")+1)
		if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		check(config.Sources{File: file}, file+":1")
	}
}

func listOf(err error) config.Problems {
	var list config.Problems
	errors.As(err, &list)
	return list
}

func FuzzFile(f *testing.F) {
	f.Add("kafka: {brokers: [a:1], tls: {enabled: true}}\n")
	f.Add("splitting:\n  tokens: &a 100\n  overlap: *a\n---\n")
	f.Add("a: &a [*a]\n")
	f.Add("api: {tokens: [\"ci:read:" + hash + "\"]}\ndelivery: {backoff: {initial: 1s}}")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(dir, "f.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(config.Sources{File: file}, up)
		if (c == nil) == (err == nil) {
			t.Fatalf("configuration %v with error %v", c, err)
		}
		if err != nil && len(listOf(err)) == 0 {
			t.Fatalf("an error without problems: %#v", err)
		}
	})
}
