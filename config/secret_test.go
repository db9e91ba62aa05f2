package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/config"
)

const secret = "hunter2"

func TestSecretsAreNeverShown(t *testing.T) {
	c := mustLoad(t, config.Sources{
		Environ: []string{
			"WAYMARK_EMBEDDING_API_KEY=" + secret, "WAYMARK_KAFKA_SASL_PASSWORD=" + secret, "WAYMARK_API_TOKENS=ci:read:" + hash,
		},
		Flags: map[string]string{
			"embedding.kind": "openai", "embedding.model": "m",
			"kafka.brokers": "a:1", "kafka.sasl.mechanism": "PLAIN", "kafka.sasl.username": "u",
		},
	}, up)
	if c.Embedding.APIKey.Reveal() != secret || c.Kafka.SASL.Password.Reveal() != secret {
		t.Fatal("the secrets are not there")
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%v %+v %#v %s %q %x\n", c, *c, *c, c.Embedding.APIKey, c.Embedding.APIKey, c.Embedding)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "config", c, "key", c.Embedding.APIKey)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "config", c, "embedding", c.Embedding, "tokens", c.API.Tokens)
	if err := json.NewEncoder(&out).Encode(c); err != nil {
		t.Fatal(err)
	}
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	if err := c.PrintJSON(&out); err != nil {
		t.Fatal(err)
	}
	for _, leak := range []string{secret, fmt.Sprintf("%x", secret), hash, hash[:16], "159 134 208"} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("%q is in the output:\n%s", leak, out.String())
		}
	}
}

func TestSecretsFromFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("key", secret+"\n")
	write("empty", "\n")
	write("two", "a\nb\n")
	flags := func(file string) map[string]string {
		return map[string]string{"embedding.kind": "openai", "embedding.model": "m", "embedding.api_key_file": file}
	}
	c := mustLoad(t, config.Sources{Flags: flags("key")}, up)
	if c.Embedding.APIKey.Reveal() != secret {
		t.Errorf("the key is %q", c.Embedding.APIKey.Reveal())
	}
	expect(t, problems(t, config.Sources{Flags: flags("empty")}, up), "--embedding.api_key_file: empty is empty")
	expect(t, problems(t, config.Sources{Flags: flags("two")}, up), "--embedding.api_key_file: two holds more than one line")
	expect(t, problems(t, config.Sources{Flags: flags("none")}, up),
		"--embedding.api_key_file: cannot be read: open none: no such file or directory")
	expect(t, problems(t, config.Sources{Flags: flags("key"), Environ: []string{"WAYMARK_EMBEDDING_API_KEY=x"}}, up),
		"--embedding.api_key_file: contradicts embedding.api_key, which is set by WAYMARK_EMBEDDING_API_KEY: keep one")
	// A role that calls no embedding service does not need the file.
	broker := config.Target{Command: config.CommandBroker}
	mustLoad(t, config.Sources{Flags: flags("none")}, broker)
}

func TestSecretsAreRefusedElsewhere(t *testing.T) {
	file := write(t, "embedding: {api_key: "+secret+"}\nkafka: {sasl: {password: "+secret+"}}\n")
	expect(t, problems(t, config.Sources{File: file}, up),
		"waymark.yaml:1: embedding.api_key: a secret does not belong into this file: set WAYMARK_EMBEDDING_API_KEY, or embedding.api_key_file to a file that holds it",
		"waymark.yaml:2: kafka.sasl.password: a secret does not belong into this file: set WAYMARK_KAFKA_SASL_PASSWORD, or kafka.sasl.password_file to a file that holds it")
	expect(t, problems(t, config.Sources{Flags: map[string]string{"embedding.api_key": secret}}, up),
		"--embedding.api_key: secrets are not taken from flags, which other users of the machine can read")
}
