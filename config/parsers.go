package config

import (
	"bytes"
	"errors"
	"fmt"

	"gopkg.in/yaml.v3"

	"github.com/waymarkhq/waymark/rag/parse/external"
)

// Parser is an external program that reads documents; see external.Config, which it has the fields of.
type Parser struct {
	Types   []string `yaml:"types,flow" json:"types"`
	When    string   `yaml:"when,omitempty" json:"when,omitempty"`
	Command []string `yaml:"command,flow,omitempty" json:"command,omitempty"`
	URL     string   `yaml:"url,omitempty" json:"url,omitempty"`
	Memory  int      `yaml:"memory,omitempty" json:"memory,omitempty"`
}

var errParsersForm = errors.New(`must be a list of parsers, written [{types: [image/png], when: no_text, command: [my-ocr, --fast]}]`)

// parseParsers reads the list of parsers as YAML.
func parseParsers(text []byte) ([]Parser, error) {
	var nodes []yaml.Node
	if err := yaml.Unmarshal(text, &nodes); err != nil {
		return nil, errParsersForm
	}
	parsers := make([]Parser, len(nodes))
	for i := range nodes {
		one, err := yaml.Marshal(&nodes[i])
		if err != nil {
			return nil, fmt.Errorf("parser %d: %w", i+1, err)
		}
		d := yaml.NewDecoder(bytes.NewReader(one))
		d.KnownFields(true)
		var wrong *yaml.TypeError
		switch err := d.Decode(&parsers[i]); {
		case errors.As(err, &wrong):
			return nil, fmt.Errorf("parser %d: only types, when, command, url and memory may stand in it, the first and the third as lists", i+1)
		case err != nil:
			return nil, errParsersForm
		}
	}
	return parsers, nil
}

// ParserConfigs are the parsers as package external wants them.
func (c *Config) ParserConfigs() []external.Config {
	var configs []external.Config
	for _, p := range c.Parsers {
		configs = append(configs, external.Config{Types: p.Types, When: p.When, Command: p.Command, URL: p.URL, Memory: p.Memory})
	}
	return configs
}

func (c *Config) checkParsers(r *report) {
	for i, p := range c.ParserConfigs() {
		var joined interface{ Unwrap() []error }
		err := p.Validate()
		switch {
		case errors.As(err, &joined):
			for _, one := range joined.Unwrap() {
				r.add("parsers", "parser %d: %v", i+1, one)
			}
		case err != nil:
			r.add("parsers", "parser %d: %v", i+1, err)
		}
	}
}
