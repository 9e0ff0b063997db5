package experiment

import (
	"embed"
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// field is one key of the format, read from the struct tags.
type field struct {
	key       string
	doc       string // its description; empty for an option of a system
	def       string
	min, max  string
	zero      string
	label     string // of a key that may be a list of values, which makes it a factor
	enum      []string
	required  bool
	noSplit   bool
	scenarios []string // scenarios in which the key is allowed; nil: all
	without   []string // keys with which it is not allowed
	needs     []string // keys without which it is not allowed
	below     string   // key whose value must not be smaller, if both are given
	one       bool     // exactly one of these keys of a mapping must be given

	typ   reflect.Type // of one value
	index int
}

// table is one mapping of the format.
type table struct {
	fields []field
	short  string // key that a bare value sets
}

var tables sync.Map // by type

func tableOf(t reflect.Type) (tab table) {
	if made, is := tables.Load(t); is {
		return made.(table)
	}
	defer func() { tables.Store(t, tab) }()
	for i := range t.NumField() {
		sf := t.Field(i)
		tag := sf.Tag
		if s := tag.Get("short"); s != "" {
			tab.short = s
			continue
		}
		key, _, _ := strings.Cut(tag.Get("json"), ",")
		if key == "" || key == "-" || tag.Get("yaml") == "-" {
			continue
		}
		words := func(name string) []string {
			if tag.Get(name) == "" {
				return nil
			}
			return strings.Split(tag.Get(name), ",")
		}
		tab.fields = append(tab.fields, field{
			key: key, doc: fieldDocs()[t.Name()+"."+sf.Name], def: tag.Get("default"), min: tag.Get("min"),
			max: tag.Get("max"), zero: tag.Get("zero"), label: tag.Get("label"), below: tag.Get("below"),
			enum: words("enum"), scenarios: words("scenario"), without: words("without"), needs: words("needs"),
			one: tag.Get("one") == "true", required: tag.Get("required") == "true",
			noSplit: tag.Get("split") == "no", typ: sf.Type, index: i,
		})
	}
	return tab
}

// sections are the files with the structs of the format, whose comments describe the keys.
//
//go:embed experiment.go link.go objects.go disseminate.go sync.go faults.go
var sections embed.FS

// fieldDocs returns the comments of the fields by field name: the lines directly above each field.
var fieldDocs = sync.OnceValue(func() map[string]string {
	docs := map[string]string{}
	files, _ := sections.ReadDir(".")
	for _, f := range files {
		text, _ := sections.ReadFile(f.Name())
		section, doc := "", ""
		for line := range strings.Lines(string(text)) {
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch word {
			case "//":
				doc += " " + rest
				continue
			case "type":
				section, _, _ = strings.Cut(rest, " ")
			}
			docs[section+"."+word], doc = strings.TrimSpace(doc), ""
		}
	}
	return docs
})

func (t table) keys() []string { return each(t.fields, func(f field) string { return f.key }) }

// each returns the results of a function for all elements of a list.
func each[T, U any](all []T, of func(T) U) []U {
	var got []U
	for _, x := range all {
		got = append(got, of(x))
	}
	return got
}

// first returns the first wanted element of a list, or nil.
func first[T any](all []T, wanted func(*T) bool) *T {
	for i := range all {
		if wanted(&all[i]) {
			return &all[i]
		}
	}
	return nil
}

func (t table) field(key string) *field {
	return first(t.fields, func(f *field) bool { return f.key == key })
}

// section returns the struct type of f, if it is a section or a list of sections, or nil.
func (f *field) section() reflect.Type {
	t := f.typ
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[scalar]()) {
		return t
	}
	return nil
}

// compound reports whether a value of f is more than one scalar.
func (f *field) compound() bool { return f.section() != nil || f.list() }

// only describes where f is allowed, unless it is the section of a scenario.
func (f *field) only() (text string) {
	if f.scenarios != nil && f.scenarios[0] != f.key {
		text = " Only in " + strings.Join(f.scenarios, ", ") + "."
	}
	if f.needs != nil {
		text += " Only with " + strings.Join(f.needs, ", ") + "."
	}
	if f.without != nil {
		text += " Not with " + strings.Join(f.without, ", ") + "."
	}
	return text
}

func (f *field) list() bool { return f.typ.Kind() == reflect.Slice }

// walk calls do for every key of a struct of the format, and for a section before its keys.
func walk(t reflect.Type, prefix string, do func(path string, f field)) {
	for _, f := range tableOf(t).fields {
		do(prefix+f.key, f)
		if s := f.section(); s != nil {
			walk(s, prefix+f.key+".", do)
		}
	}
}

// kind describes the type of one value of f, apart from enumerations and words for zero.
func (f *field) kind() scalarKind {
	if f.compound() || f.typ.Kind() == reflect.Map {
		return kinds()["mapping"]
	}
	return kinds()[f.typ.Name()]
}

// sortedKeys returns the keys of a map, sorted.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

type object = map[string]any

// Schema returns the JSON Schema (draft 2020-12) of the format, for editors; the names of systems
// come from the catalog. The schema checks single values; Parse checks the rest, and the options of
// systems.
func Schema(cat Catalog) ([]byte, error) {
	s := &schemaMaker{systems: cat.Names(), defs: object{}}
	root := s.section(reflect.TypeFor[Experiment]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Plimsoll experiment"
	root["$defs"] = s.defs
	b, err := json.MarshalIndent(root, "", "  ")
	return append(b, '\n'), err
}

type schemaMaker struct {
	systems []string
	defs    object
}

func (s *schemaMaker) section(t reflect.Type) object {
	tab := tableOf(t)
	props, required := object{}, []string{}
	for _, f := range tab.fields {
		if f.key == "use" {
			f.enum = s.systems
		}
		o, about := s.one(f), f.meaning()
		if f.label != "" {
			o = anyOf(o, object{"type": "array", "items": o, "minItems": 1, "uniqueItems": true})
			about += " A list makes it a factor."
		}
		o["description"] = about
		if f.def != "" {
			o["default"] = f.def
		}
		props[f.key] = o
		if f.required {
			required = append(required, f.key)
		}
	}
	o := object{"type": "object", "properties": props, "required": required, "additionalProperties": false}
	if tab.short == "" {
		return o
	}
	return anyOf(props[tab.short].(object), o)
}

func anyOf(others ...object) object { return object{"anyOf": others} }

// one returns the schema of one value of f.
func (s *schemaMaker) one(f field) (o object) {
	switch t := f.section(); {
	case f.typ.Kind() == reflect.Map:
		o = object{"type": "object"}
	case f.list():
		el := f
		el.typ, el.zero = f.typ.Elem(), ""
		item := s.one(el)
		o = anyOf(item, object{"type": "array", "items": item}) // a bare value is a list of one
	case t != nil:
		o = s.section(t)
	case f.enum != nil:
		words := []any{}
		for _, w := range f.enum {
			words = append(words, w)
			if n, err := strconv.ParseFloat(w, 64); err == nil { // YAML reads 1.1 as a number
				words = append(words, n)
			}
		}
		o = object{"enum": words}
	default:
		o = s.plain(f)
	}
	if f.zero != "" {
		o = anyOf(object{"const": f.zero}, o)
	}
	return o
}

func (s *schemaMaker) plain(f field) object {
	if k := f.kind(); k.pattern != "" {
		name := strings.ReplaceAll(k.name, " ", "-")
		types := []string{"string"}
		if allowed := regexp.MustCompile(k.pattern); allowed.MatchString("0") {
			types = append(types, "number") // editors read 512 as one
		}
		s.defs[name] = object{"type": types, "pattern": k.pattern, "minimum": 0, "description": k.doc}
		return object{"$ref": "#/$defs/" + name}
	}
	o := object{"type": "integer"}
	switch f.typ.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": []string{"string", "number"}} // YAML reads 5 as a number
	case reflect.Float64:
		o["type"] = "number"
	case reflect.Uint64:
		o["minimum"] = 0
	}
	for limit, text := range map[string]string{"minimum": f.min, "maximum": f.max} {
		if n, err := strconv.Atoi(text); err == nil {
			o[limit] = n
		}
	}
	return o
}

// limits describes the least and the largest value.
func (f *field) limits() string {
	switch low := f.min != "" && f.min != "0"; {
	case low && f.max != "":
		return " " + f.min + "–" + f.max + "."
	case low:
		return " ≥ " + f.min + "."
	case f.max != "":
		return " ≤ " + f.max + "."
	}
	return ""
}

// meaning returns the doc of f, where f is allowed, and its limits.
func (f *field) meaning() string { return f.doc + f.only() + f.limits() }
