package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Field is one key of the configuration.
type Field struct {
	// Key as in YAML, joined by dots: "kafka.topic_prefix".
	Key string
	// Help is one sentence for people.
	Help string
	// Form of the value, for people: number, true|false, duration, list, secret, yaml, or a kind of text.
	Form string

	index []int
}

// Variable that sets the field: WAYMARK_KAFKA_TOPIC_PREFIX.
func (f Field) Variable() string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(f.Key, ".", "_"))
}

// Secret reports whether the field may not be given as a flag, because other users of the machine can read flags.
func (f Field) Secret() bool { return f.Form == "secret" }

// Default of the field as text, "" if there is none.
func (f Field) Default() string { return strings.Trim(formatValue(f.in(Default())), "[]") }

// Fields lists every key, in the order of the struct.
func Fields() []Field {
	return appendFields(nil, reflect.TypeFor[Config](), "", nil)
}

func appendFields(list []Field, t reflect.Type, prefix string, index []int) []Field {
	for i := range t.NumField() {
		sf := t.Field(i)
		key, ok := sf.Tag.Lookup("key")
		if !ok {
			continue
		}
		at := append(append([]int(nil), index...), i)
		if sf.Type.Kind() == reflect.Struct {
			list = appendFields(list, sf.Type, prefix+key+".", at)
			continue
		}
		list = append(list, Field{Key: prefix + key, Help: sf.Tag.Get("help"), Form: form(sf), index: at})
	}
	return list
}

func form(sf reflect.StructField) string {
	if named := sf.Tag.Get("form"); named != "" {
		return named
	}
	switch sf.Type {
	case reflect.TypeFor[time.Duration]():
		return "duration"
	case reflect.TypeFor[Secret](), reflect.TypeFor[[]Token]():
		return "secret"
	}
	switch sf.Type.Kind() {
	case reflect.Int:
		return "number"
	case reflect.Bool:
		return "true|false"
	case reflect.Slice:
		return "list"
	}
	return "text"
}

// in is the field's value in c, settable.
func (f Field) in(c *Config) reflect.Value { return reflect.ValueOf(c).Elem().FieldByIndex(f.index) }

// set parses the texts and assigns them; only lists take other than one text.
func (f Field) set(c *Config, texts ...string) error {
	v := f.in(c)
	switch v.Interface().(type) {
	case []string:
		v.Set(reflect.ValueOf(texts))
		return nil
	case []Token:
		tokens := make([]Token, 0, len(texts))
		for _, text := range texts {
			t, err := ParseToken(text)
			if err != nil {
				return err
			}
			tokens = append(tokens, t)
		}
		v.Set(reflect.ValueOf(tokens))
		return nil
	case []Parser:
		parsers, err := parseParsers([]byte(texts[0]))
		if err != nil {
			return err
		}
		v.Set(reflect.ValueOf(parsers))
		return nil
	}
	return setScalar(v, texts[0])
}

func setScalar(v reflect.Value, text string) error {
	switch v.Interface().(type) {
	case time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a duration such as 30s, 500ms or 1m30s", text)
		}
		v.SetInt(int64(d))
	case int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		v.SetInt(int64(n))
	case bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		v.SetBool(text == "true")
	default:
		v.SetString(text)
	}
	return nil
}

// splitList splits a list that is given as one text, at commas; white space around items does not count.
func splitList(text string) []string {
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// setText assigns a value that is given as one text, by a variable or a flag.
func (f Field) setText(c *Config, text string) error {
	if f.in(c).Kind() == reflect.Slice && f.Form != "yaml" {
		return f.set(c, splitList(text)...)
	}
	return f.set(c, text)
}

// formatValue is a value as a person would write it; secrets are hidden.
func formatValue(v reflect.Value) string {
	if d, ok := v.Interface().(time.Duration); ok {
		return formatDuration(d)
	}
	return fmt.Sprint(v.Interface())
}

// formatDuration leaves out the zero units that time.Duration prints: 1m, not 1m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
