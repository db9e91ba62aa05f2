package main

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/waymarkhq/waymark/client"
	"github.com/waymarkhq/waymark/config"
)

// cli is the command line. The order is that of the help.
type cli struct {
	globals

	Up     upCmd     `cmd:"" group:"serve" help:"Run everything in one process, and ingest paths if any are given."`
	Run    runCmd    `cmd:"" group:"serve" help:"Run some roles as one pod of a cluster."`
	Broker brokerCmd `cmd:"" group:"serve" help:"Run the embedded Kafka broker alone, for pods on this machine."`
	Topics topicsCmd `cmd:"" group:"serve" help:"Plan and create the topics."`

	Ingest ingestCmd `cmd:"" group:"client" help:"Send files, folders, lines of JSON or standard input."`
	Delete deleteCmd `cmd:"" group:"client" help:"Delete documents."`
	Status statusCmd `cmd:"" group:"client" help:"Show what became of documents, or count them."`
	Search searchCmd `cmd:"" group:"client" help:"Search what is served."`
	DLQ    dlqCmd    `cmd:"" name:"dlq" group:"client" help:"Look after dead letters."`

	Parse   parseCmd   `cmd:"" group:"other" help:"Show the text and the structure that the pipeline would take from a file."`
	Split   splitCmd   `cmd:"" group:"other" help:"Show the chunks that the pipeline would make of a file."`
	Blobs   blobsCmd   `cmd:"" group:"other" help:"Look after the content of large documents."`
	Verify  verifyCmd  `cmd:"" group:"other" help:"Compare the store with the log, and repair what differs."`
	Config  configCmd  `cmd:"" group:"other" help:"Print or check the configuration."`
	Version versionCmd `cmd:"" group:"other" help:"Print the version."`
}

// globals are the flags of every command.
type globals struct {
	ConfigFile string `name:"config" group:"global" placeholder:"FILE" env:"WAYMARK_CONFIG" help:"Configuration file (YAML)."`
	LogFormat  string `group:"global" enum:"text,json" default:"text" placeholder:"FORMAT" env:"WAYMARK_LOG_FORMAT" help:"Form of the logs on standard error: text or json."`
	LogLevel   string `group:"global" enum:",debug,info,warn,error" default:"" placeholder:"LEVEL" env:"WAYMARK_LOG_LEVEL" help:"Log from this level on: debug, info, warn or error. Default info for services, warn where a person looks on."`
	JSON       bool   `name:"json" group:"global" help:"Write results to standard output as JSON, one object a line."`
}

func newCLI() *cli {
	common := []string{"data_dir", "api.listen", "kafka.brokers", "store.kind", "embedding.kind"}
	return &cli{
		Up:     upCmd{Configuration: newConfigFlags(common...)},
		Run:    runCmd{Configuration: newConfigFlags(append(common, "store.path", "monitor.listen")...)},
		Broker: brokerCmd{Configuration: newConfigFlags("data_dir", "broker.listen")},
		Topics: topicsCmd{Configuration: newConfigFlags("kafka.brokers", "kafka.topic_prefix", "kafka.partitions", "kafka.replication")},
		Parse:  parseCmd{readFlags: readFlags{Configuration: newConfigFlags("parsers", "limits.parse_time", "limits.document_bytes")}},
		Split:  splitCmd{readFlags{Configuration: newConfigFlags("splitting.mode", "splitting.tokens", "splitting.overlap", "splitting.parent_tokens", "parsers", "limits.parse_time", "limits.document_bytes", "limits.chunks")}},
		Blobs:  blobsCmd{Collect: blobsCollectCmd{Configuration: newConfigFlags("data_dir", "kafka.brokers", "blobs.url")}},
		Verify: verifyCmd{Configuration: newConfigFlags("data_dir", "kafka.brokers", "store.kind", "store.path", "embedding.kind", "delivery.removal_delay")},
		Config: configCmd{
			Print:    configPrintCmd{Configuration: newConfigFlags(allKeys()...)},
			Validate: configValidateCmd{Configuration: newConfigFlags()},
		},
	}
}

func allKeys() []string {
	var keys []string
	for _, f := range config.Fields() {
		keys = append(keys, f.Key)
	}
	return keys
}

// configFlags has one flag for every key of the configuration that is not a secret.
type configFlags struct {
	kong.Plugins
}

// newConfigFlags makes the flags; help shows only those of the named keys.
func newConfigFlags(shown ...string) configFlags {
	visible := map[string]bool{}
	for _, key := range shown {
		visible[key] = true
	}
	var fields []reflect.StructField
	for i, f := range config.Fields() {
		if f.Secret() {
			continue
		}
		tag := fmt.Sprintf(`name:%q help:%q placeholder:%q group:"config"`, f.FlagName(), flagHelp(f), strings.ToUpper(f.Form))
		if !visible[f.Key] {
			tag += ` hidden:""`
		}
		if f.Key == "api.listen" {
			tag += ` aliases:"listen"`
		}
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprintf("F%d", i), Type: reflect.TypeFor[*string](), Tag: reflect.StructTag(tag),
		})
	}
	return configFlags{kong.Plugins{reflect.New(reflect.StructOf(fields)).Interface()}}
}

// flagHelp is the help of a key with its default.
func flagHelp(f config.Field) string {
	if f.Default() == "" || strings.Contains(f.Help, "(") {
		return f.Help
	}
	return fmt.Sprintf("%s Default %s.", f.Help, f.Default())
}

// values are the flags that were given, by key.
func (f configFlags) values() map[string]string {
	given := map[string]string{}
	v := reflect.ValueOf(f.Plugins[0]).Elem()
	for i, field := range config.Fields() {
		if value := v.FieldByName(fmt.Sprintf("F%d", i)); value.IsValid() && !value.IsNil() {
			given[field.Key] = value.Elem().String()
		}
	}
	return given
}

// moreFlags is what the help of commands with a configuration ends in.
const moreFlags = "Every key of the configuration is a flag, such as --kafka.partitions=6, and a variable, such as " +
	"WAYMARK_KAFKA_PARTITIONS. 'waymark config print --help' lists them all."

// load reads the configuration for a command.
func (e *environment) load(f configFlags, t config.Target) (*config.Config, error) {
	return config.Load(config.Sources{
		File: e.globals.ConfigFile, Environ: e.environ, Reserved: reservedVariables(), Flags: f.values(),
	}, t)
}

// loadBeside reads the configuration of a command that works on what 'up' has, beside it: it needs as much, and listens
// nowhere.
func (e *environment) loadBeside(f configFlags) (*config.Config, Runtime, error) {
	cfg, err := e.load(f, config.Target{Command: config.CommandUp, Insecure: true})
	if err != nil {
		return nil, nil, err
	}
	runtime, err := e.runtime()
	return cfg, runtime, err
}

// runtime is the pipeline of this build.
func (e *environment) runtime() (Runtime, error) {
	if r := e.newRuntime(e.log); r != nil {
		return r, nil
	}
	return nil, errNoRuntime
}

const (
	apiVariable       = "WAYMARK_API"
	tokenVariable     = "WAYMARK_API_TOKEN"
	tokenFileVariable = "WAYMARK_API_TOKEN_FILE"
)

// reservedVariables are those that are no keys of the configuration. WAYMARK_CACHE is the development tools': processes
// that they start inherit it.
func reservedVariables() []string {
	return []string{
		apiVariable, tokenVariable, tokenFileVariable, "WAYMARK_CONFIG", "WAYMARK_LOG_FORMAT", "WAYMARK_LOG_LEVEL", "WAYMARK_CACHE",
	}
}

// clientFlags are the flags of commands that call the API.
type clientFlags struct {
	API       string `name:"api" placeholder:"URL" env:"WAYMARK_API" help:"Address of the API. Default: api.listen of the configuration."`
	TokenFile string `name:"api-token-file" placeholder:"FILE" env:"WAYMARK_API_TOKEN_FILE" help:"File with the API token; the variable WAYMARK_API_TOKEN holds the token itself."`
}

// client makes a client of the API that the flags name.
func (f clientFlags) client(e *environment, retry client.Retry) (*client.Client, error) {
	address := f.API
	if address == "" {
		var err error
		if address, err = e.defaultAPI(); err != nil {
			return nil, err
		}
	}
	token, err := f.token(e)
	if err != nil {
		return nil, err
	}
	c, err := client.New(address, client.Options{Token: token, UserAgent: "waymark/" + readVersion().Version, Retry: retry})
	if err != nil {
		return nil, usageError("--api: %v", err)
	}
	return c, nil
}

// token comes from a variable or a file, never from a flag, which every user of the machine could read.
func (f clientFlags) token(e *environment) (string, error) {
	token := e.getenv(tokenVariable)
	if f.TokenFile == "" {
		return token, nil
	}
	if token != "" {
		return "", usageError("%s and --api-token-file contradict each other", tokenVariable)
	}
	text, err := os.ReadFile(f.TokenFile)
	if err != nil {
		return "", usageError("--api-token-file: %v", err)
	}
	token = strings.TrimSpace(string(text))
	if token == "" {
		return "", usageError("--api-token-file: %s is empty", f.TokenFile)
	}
	return token, nil
}

// defaultAPI is the address that the configuration gives to the API.
func (e *environment) defaultAPI() (string, error) {
	c, err := config.Load(config.Sources{
		File: e.globals.ConfigFile, Environ: e.environ, Reserved: reservedVariables(),
	}, config.Target{Command: config.CommandClient})
	if err != nil {
		return "", err
	}
	return baseURL(c.API.Listen), nil
}

var errNoRuntime = errors.New("this build has no pipeline")
