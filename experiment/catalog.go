package experiment

import (
	"cmp"
	"reflect"
	"strconv"

	"github.com/plimsoll-project/plimsoll/experiment/suggest"
	"github.com/plimsoll-project/plimsoll/internal/option"
)

// Catalog describes the available storage systems: the names allowed under `systems:` and the
// options allowed under `with:`.
type Catalog []SystemSpec

// SystemSpec describes one system that an experiment may use.
type SystemSpec struct {
	Name     string
	Modes    []string // at least one of "start", "attach"; the first is the default
	Options  []option.Option
	Baseline bool // a raw baseline: no storage system, just bytes over the same link
	// Can lists abilities of its nodes: "http" (their objects can be fetched over HTTP), "spread"
	// (they can be a swarm, in which those of a raw baseline pass nothing on) and "follow" (they
	// can follow a chain that their peers have).
	Can []string
}

func (c Catalog) find(name string) *SystemSpec {
	return first(c, func(s *SystemSpec) bool { return s.Name == name })
}

func (c Catalog) names() []string { return each(c, func(s SystemSpec) string { return s.Name }) }

func (s *SystemSpec) option(name string) *option.Option {
	return first(s.Options, func(o *option.Option) bool { return o.Name == name })
}

// nearOption returns the hint for an unknown option.
func (s *SystemSpec) nearOption(name string) string {
	return suggest.DidYouMean(name, each(s.Options, func(o option.Option) string { return o.Name }))
}

// optionTypes maps the types of options that have restricted values.
var optionTypes = map[string]reflect.Type{"size": reflect.TypeFor[Bytes](), "duration": reflect.TypeFor[Duration](),
	"int": reflect.TypeFor[int64](), "bool": reflect.TypeFor[bool]()}

func optionField(name, typ string, enum []string) field {
	return field{key: name, typ: cmp.Or(optionTypes[typ], reflect.TypeFor[string]()), enum: enum}
}

// optionNoun returns a phrase for the values that the option accepts, for errors.
func optionNoun(o *option.Option) string {
	if o.Type == "strings" {
		return "a list of texts"
	}
	f := optionField(o.Name, o.Type, o.Enum)
	return f.noun()
}

// readOption checks one value, and returns it as written in a file and as systems expect it: sizes
// in bytes, durations as in the standard library.
func readOption(o *option.Option, text string) (file, system string, err error) {
	f := optionField(o.Name, o.Type, o.Enum)
	v := reflect.New(f.typ).Elem()
	if err := f.parse(text, v); err != nil {
		return "", "", err
	}
	file = f.text(v)
	switch x := v.Interface().(type) {
	case Bytes:
		return file, strconv.FormatInt(int64(x), 10), nil
	case Duration:
		return file, x.Std().String(), nil
	}
	return file, file, nil
}
