package main

import (
	"github.com/waymarkhq/waymark/config"
)

type configCmd struct {
	Print    configPrintCmd    `cmd:"" group:"sub" help:"Print the configuration that holds, and where each value comes from."`
	Validate configValidateCmd `cmd:"" group:"sub" help:"Check the configuration; all problems are named at once."`
}

// targetFlags choose the command that a configuration is checked for.
type targetFlags struct {
	For      string   `enum:"up,run,broker,topics" default:"up" placeholder:"COMMAND" help:"The command that it is for: up, run, broker or topics. Default ${default}."`
	Roles    []string `placeholder:"ROLE" enum:"api,chunker,embedder,indexer,tracker,deadletters" help:"With --for=run, the roles. Default all."`
	Insecure bool     `help:"Allow addresses that other machines can reach, without API tokens."`
}

func (t targetFlags) target() config.Target {
	roles := t.Roles
	if len(roles) == 0 {
		roles = config.Roles()
	}
	return config.Target{Command: config.Command(t.For), Roles: roles, Insecure: t.Insecure}
}

type configPrintCmd struct {
	targetFlags
	Configuration configFlags `embed:""`
}

// Help is the long description.
func (configPrintCmd) Help() string {
	return "Values come from the defaults, the file of --config, variables and flags; the later wins. A variable is named as " +
		"its key: WAYMARK_KAFKA_BROKERS for kafka.brokers. Lists are separated by commas. Secrets come from variables or files, " +
		"never from flags, and are not printed."
}

func (c *configPrintCmd) Run(env *environment) error {
	cfg, err := env.load(c.Configuration, c.target())
	if err != nil {
		return err
	}
	if env.globals.JSON {
		return cfg.PrintJSON(env.console.Out())
	}
	return cfg.Print(env.console.Out())
}

type configValidateCmd struct {
	targetFlags
	Configuration configFlags `embed:""`
}

// Help is the long description.
func (configValidateCmd) Help() string { return moreFlags }

func (c *configValidateCmd) Run(env *environment) error {
	if _, err := env.load(c.Configuration, c.target()); err != nil {
		return err
	}
	if env.globals.JSON {
		return env.writeJSON(map[string]bool{"valid": true})
	}
	env.console.Printf("The configuration is valid for '%s'.\n", c.For)
	return nil
}
