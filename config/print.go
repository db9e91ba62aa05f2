package config

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Print writes the effective configuration as YAML, each value that is not a default with the place that it came from.
// Secrets are not shown: those without a value are left out, the others are printed as REDACTED.
func (c *Config) Print(w io.Writer) error {
	tree, err := c.tree()
	if err != nil {
		return err
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(tree); err != nil {
		return fmt.Errorf("print the configuration: %w", err)
	}
	return enc.Close()
}

// PrintJSON writes the effective configuration as one JSON object, with durations as texts and secrets as in Print.
func (c *Config) PrintJSON(w io.Writer) error {
	tree, err := c.tree()
	if err != nil {
		return err
	}
	var values map[string]any
	if err := tree.Decode(&values); err != nil {
		return fmt.Errorf("print the configuration: %w", err)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(values)
}

// tree is the configuration as a YAML mapping, in the order of the fields.
func (c *Config) tree() (*yaml.Node, error) {
	root := &yaml.Node{Kind: yaml.MappingNode}
	sections := map[string]*yaml.Node{"": root}
	for _, f := range Fields() {
		value := f.in(c).Interface()
		if secret, ok := value.(Secret); ok && secret == "" {
			continue
		}
		if d, ok := value.(time.Duration); ok {
			value = formatDuration(d)
		}
		leaf := &yaml.Node{}
		if err := leaf.Encode(value); err != nil {
			return nil, fmt.Errorf("print %s: %w", f.Key, err)
		}
		if leaf.Kind == yaml.SequenceNode {
			leaf.Style = yaml.FlowStyle
		}
		leaf.LineComment = c.origins[f.Key].String()
		parent, name := section(sections, f.Key)
		parent.Content = append(parent.Content, scalar(name), leaf)
	}
	return root, nil
}

// section finds or makes the mapping that holds the key, and returns it with the key's last part.
func section(sections map[string]*yaml.Node, key string) (*yaml.Node, string) {
	i := strings.LastIndexByte(key, '.')
	if i < 0 {
		return sections[""], key
	}
	path := key[:i]
	node := sections[path]
	if node == nil {
		parent, name := section(sections, path)
		node = &yaml.Node{Kind: yaml.MappingNode}
		parent.Content = append(parent.Content, scalar(name), node)
		sections[path] = node
	}
	return node, key[i+1:]
}

func scalar(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}
