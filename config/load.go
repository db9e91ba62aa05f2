package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/waymarkhq/waymark/rag/blob"
)

const variablePrefix = "WAYMARK_"

// Sources are where values come from. The later wins: defaults, File, Environ, Flags.
type Sources struct {
	// File is the path of a YAML file; "" means none.
	File string
	// Environ holds NAME=value, as os.Environ gives them. Lists are separated by commas; an empty variable counts as not
	// set. Only names that begin with WAYMARK_ matter, and an unknown one of those is a problem.
	Environ []string
	// Reserved are names of variables that begin with WAYMARK_ and that the program reads itself.
	Reserved []string
	// Flags by key, as given on the command line; an empty one is a value.
	Flags map[string]string
}

// Load merges the sources, settles what depends on other values, reads the secrets' files and validates for the
// command. Its error is Problems: all of them.
func Load(src Sources, t Target) (*Config, error) {
	c, r := Default(), &report{broken: map[string]bool{}}
	r.origins = c.origins
	if src.File != "" {
		if data, err := readSmallFile(src.File); err != nil {
			r.list = append(r.list, Problem{Origin: Origin{Source: "--config"}, Message: err.Error()})
		} else {
			newFile(src.File, c, r).read(data)
		}
	}
	c.readVariables(src, r)
	c.readFlags(src.Flags, r)
	c.settle(t)
	c.readSecrets(t, r)
	c.validate(t, r)
	if err := r.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// serviceLink matches the variables that Kubernetes sets in every pod for each service of its namespace: a service
// named waymark must not keep the pods from starting.
var serviceLink = regexp.MustCompile(`_SERVICE_HOST$|_SERVICE_PORT(_|$)|_PORT(_[0-9]+_(TCP|UDP|SCTP)(_|$)|$)`)

func (c *Config) readVariables(src Sources, r *report) {
	fields := map[string]Field{}
	names := slices.Clone(src.Reserved)
	for _, f := range Fields() {
		fields[f.Variable()] = f
		names = append(names, f.Variable())
	}
	for _, entry := range src.Environ {
		name, value, _ := strings.Cut(entry, "=")
		field, known := fields[name]
		switch {
		case !strings.HasPrefix(name, variablePrefix) || value == "" || slices.Contains(src.Reserved, name):
		case known:
			c.assignText(field, Origin{Source: name}, value, r)
		case !serviceLink.MatchString(name):
			r.list = append(r.list,
				Problem{Origin: Origin{Source: name}, Message: "unknown variable" + didYouMean(name, names)})
		}
	}
}

func (c *Config) readFlags(flags map[string]string, r *report) {
	for _, f := range Fields() {
		value, given := flags[f.Key]
		origin := Origin{Source: "--" + f.FlagName()}
		switch {
		case !given:
		case f.Secret():
			r.list = append(r.list, Problem{Origin: origin, Key: f.Key,
				Message: "secrets are not taken from flags, which other users of the machine can read"})
		default:
			c.assignText(f, origin, value, r)
		}
	}
}

// FlagName is the flag that sets the field, without its dashes: kafka.brokers; data-dir for the only key outside of a section.
func (f Field) FlagName() string {
	if !strings.Contains(f.Key, ".") {
		return strings.ReplaceAll(f.Key, "_", "-")
	}
	return f.Key
}

func (c *Config) assignText(f Field, origin Origin, text string, r *report) {
	if err := f.setText(c, text); err != nil {
		r.broken[f.Key] = true
		r.list = append(r.list, Problem{Origin: origin, Key: f.Key, Message: err.Error()})
		return
	}
	// A later source repairs what an earlier one broke, but the earlier problem stays reported.
	delete(r.broken, f.Key)
	c.origins[f.Key] = origin
}

// settle gives the values that depend on others and that nobody has set.
func (c *Config) settle(t Target) {
	if t.embedded(c) {
		if !c.isSet("kafka.partitions") {
			c.Kafka.Partitions = 4
		}
		if !c.isSet("kafka.replication") {
			c.Kafka.Replication = 1
		}
	}
	if t.Command == CommandUp && c.Store.Kind == "sqlite" && c.Store.Path == "" {
		c.Store.Path = filepath.Join(c.DataDir, "store.db")
	}
	if t.Command == CommandUp && t.embedded(c) && c.Blobs.URL == "" {
		if dir, err := filepath.Abs(filepath.Join(c.DataDir, "blobs")); err == nil {
			c.Blobs.URL = blob.FolderURL(dir)
		}
	}
	if c.Embedding.Kind == "openai" && c.Embedding.URL == "" {
		c.Embedding.URL = openAIURL
	}
}

// secretFiles are the secrets that may stand in a file, and whether the command needs them.
func (c *Config) secretFiles(t Target) []secretFile {
	return []secretFile{
		{"kafka.sasl.password", "kafka.sasl.password_file", &c.Kafka.SASL.Password, c.Kafka.SASL.PasswordFile, t.kafka()},
		{"weaviate.api_key", "weaviate.api_key_file", &c.Weaviate.APIKey, c.Weaviate.APIKeyFile, t.store()},
		{"embedding.api_key", "embedding.api_key_file", &c.Embedding.APIKey, c.Embedding.APIKeyFile, t.embedder()},
	}
}

type secretFile struct {
	key, fileKey string
	value        *Secret
	path         string
	needed       bool
}

// readSecrets reads the files of secrets. The value and its file together contradict each other.
func (c *Config) readSecrets(t Target, r *report) {
	for _, s := range c.secretFiles(t) {
		if s.path == "" || !s.needed {
			continue
		}
		if *s.value != "" {
			r.add(s.fileKey, "contradicts %s, which is set by %s: keep one", s.key, c.origins[s.key])
			continue
		}
		data, err := readSmallFile(s.path)
		text := strings.TrimRight(string(data), "\r\n")
		switch {
		case err != nil:
			r.add(s.fileKey, "cannot be read: %v", err)
		case text == "":
			r.add(s.fileKey, "%s is empty", s.path)
		case strings.ContainsAny(text, "\r\n\x00"):
			r.add(s.fileKey, "%s holds more than one line", s.path)
		default:
			*s.value = Secret(text)
			c.origins[s.key] = Origin{Source: fmt.Sprintf("%s in %s", s.key, s.path)}
		}
	}
}
