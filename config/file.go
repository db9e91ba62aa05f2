package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxFileBytes bounds the configuration file and the files of secrets.
const maxFileBytes = 1 << 20

// readSmallFile reads a file of at most maxFileBytes.
func readSmallFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxFileBytes)
	}
	return data, nil
}

// file reads a YAML file into a Config and remembers the line of every value.
type file struct {
	name   string
	config *Config
	report *report
	fields map[string]Field
	// children of every section: the keys that may stand in it.
	children map[string][]string
}

func newFile(name string, c *Config, r *report) *file {
	f := &file{name: name, config: c, report: r, fields: map[string]Field{}, children: map[string][]string{}}
	for _, field := range Fields() {
		f.fields[field.Key] = field
		parts := strings.Split(field.Key, ".")
		for i, part := range parts {
			section := strings.Join(parts[:i], ".")
			if list := f.children[section]; len(list) == 0 || list[len(list)-1] != part {
				f.children[section] = append(list, part)
			}
		}
	}
	return f
}

func (f *file) read(data []byte) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return // an empty file says nothing
	case err != nil:
		f.syntax(err)
		return
	}
	f.section("", doc.Content[0])
	var next yaml.Node
	switch err := dec.Decode(&next); {
	case errors.Is(err, io.EOF):
	case err != nil:
		f.syntax(err)
	default:
		f.problem(next.Line, "", "a second YAML document; one file holds one configuration")
	}
}

func (f *file) syntax(err error) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if n, scanErr := fmt.Sscanf(text, "line %d:", &line); n == 1 && scanErr == nil {
		_, text, _ = strings.Cut(text, ": ")
	}
	f.problem(line, "", "not YAML: %s", text)
}

func (f *file) problem(line int, key, format string, args ...any) {
	f.report.list = append(f.report.list,
		Problem{Origin: Origin{f.name, line}, Key: key, Message: fmt.Sprintf(format, args...)})
}

// section reads a map of keys. A section without a value says nothing.
func (f *file) section(section string, node *yaml.Node) {
	node = resolve(node)
	if isNull(node) {
		return
	}
	if node.Kind != yaml.MappingNode {
		f.problem(node.Line, section, "must hold keys with values: %s", strings.Join(f.children[section], ", "))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		key := name.Value
		if section != "" {
			key = section + "." + name.Value
		}
		if first := seen[key]; first != 0 {
			f.problem(name.Line, key, "is there twice; first in line %d", first)
			continue
		}
		seen[key] = name.Line
		f.value(section, name, key, value)
	}
}

func (f *file) value(section string, name *yaml.Node, key string, value *yaml.Node) {
	if f.children[key] != nil {
		f.section(key, value)
		return
	}
	field, known := f.fields[key]
	if !known {
		f.problem(name.Line, key, "unknown key%s", didYouMean(name.Value, f.children[section]))
		return
	}
	origin := Origin{f.name, value.Line}
	if value = resolve(value); isNull(value) {
		return
	}
	if err := f.assign(field, value); err != nil {
		f.report.broken[key] = true
		f.problem(origin.Line, key, "%v", err)
		return
	}
	f.config.origins[key] = origin
}

func (f *file) assign(field Field, node *yaml.Node) error {
	if _, tokens := field.in(f.config).Interface().([]Token); field.Secret() && !tokens {
		return fmt.Errorf("a secret does not belong into this file: set %s, or %s_file to a file that holds it",
			field.Variable(), field.Key)
	}
	if field.Form == "yaml" {
		text, err := yaml.Marshal(node)
		if err != nil {
			return err
		}
		return field.set(f.config, string(text))
	}
	texts, err := scalars(field, node)
	if err != nil {
		return err
	}
	return field.set(f.config, texts...)
}

// scalars are the texts of a value: those of a list's items, or the one of anything else.
func scalars(field Field, node *yaml.Node) ([]string, error) {
	items := []*yaml.Node{node}
	if field.Form == "list" || field.Key == "api.tokens" {
		if node.Kind != yaml.SequenceNode {
			return nil, errors.New("must be a list, written [a, b]")
		}
		items = node.Content
	}
	texts := make([]string, 0, len(items))
	for _, item := range items {
		item = resolve(item)
		if item.Kind != yaml.ScalarNode || isNull(item) {
			return nil, fmt.Errorf("must be a %s", strings.Replace(field.Form, "list", "list of texts", 1))
		}
		texts = append(texts, item.Value)
	}
	return texts, nil
}

// resolve follows an alias to the node that it stands for.
func resolve(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Tag == "!!null" }
