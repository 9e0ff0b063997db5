package experiment

import (
	"reflect"
	"strings"
)

// Key is a key of the format, for its reference.
type Key struct {
	Path     string // dotted
	Value    string // what it takes
	Default  string // empty: none, or the key is required
	Meaning  string // sentences
	Factor   bool   // it may be a list
	Required bool
	Section  bool   // it has keys of its own
	Short    string // of those, what a bare value sets
}

// Keys are all keys of the format, sections before what they have.
func Keys() []Key {
	var keys []Key
	walk(reflect.TypeFor[Experiment](), "", func(path string, f field) {
		k := Key{Path: path, Value: f.valueText(), Default: f.def, Meaning: f.meaning(), Factor: f.axis ||
			path == varyPath,
			Required: f.required}
		if s := f.section(); s != nil {
			k.Section, k.Short = true, tableOf(s).short
		}
		keys = append(keys, k)
	})
	return keys
}

// valueText is the type of f in the table of keys.
func (f *field) valueText() string {
	text := f.kind().name
	switch {
	case f.enum != nil:
		text = "`" + strings.Join(f.enum, "`, `") + "`"
	case f.list() && f.section() == nil:
		text = "texts"
	case f.list():
		text = "mappings"
	}
	switch {
	case f.list():
		return "list of " + text
	case f.zero != "" && f.section() == nil:
		text += " or `" + f.zero + "`"
	}
	return text
}

// meaning is the doc of f with what else is to be known of it.
func (f *field) meaning() string { return f.doc() + f.only() + f.limits() }
