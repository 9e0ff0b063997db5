package experiment

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

type object = map[string]any

// Schema is the JSON Schema (draft 2020-12) of the format, for editors; the names of
// systems come from the catalog. It checks what can be checked value by value; Parse
// checks the rest, and the options of systems.
func Schema(cat Catalog) ([]byte, error) {
	s := &schemaMaker{systems: cat.names(), defs: object{}}
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
	for i := range tab.fields {
		f := &tab.fields[i]
		if f.key == "use" {
			f.enum = s.systems
		}
		props[f.key] = s.field(*f)
		if f.required {
			required = append(required, f.key)
		}
	}
	o := object{"type": "object", "properties": props, "additionalProperties": false}
	if len(required) > 0 {
		o["required"] = required
	}
	if tab.short == nil {
		return o
	}
	short := s.value(*tab.field(tab.short[0]))
	return object{"anyOf": []any{short, o}}
}

func (s *schemaMaker) field(f field) object {
	var o object
	switch {
	case f.typ.Kind() == reflect.Map:
		o = object{"type": "object"}
	case f.axis:
		one := s.one(f)
		o = object{"anyOf": []any{one, object{"type": "array", "items": one, "minItems": 1, "uniqueItems": true}}}
	default:
		o = s.one(f)
	}
	o["description"] = f.describe()
	if f.def != "" {
		o["default"] = f.def
	}
	return o
}

// one is the schema of one value of f, whatever it is made of.
func (s *schemaMaker) one(f field) object {
	switch t := f.section(); {
	case f.list():
		el := f
		el.typ, el.zero = f.typ.Elem(), ""
		item := s.one(el)
		return f.orWord(item, object{"type": "array", "items": item}) // a bare value is a list of one
	case t != nil:
		return f.orWord(s.section(t))
	}
	return s.value(f)
}

// orWord allows the word for the zero value, and any of the others.
func (f *field) orWord(others ...any) object {
	if f.zero != "" {
		others = append([]any{object{"const": f.zero}}, others...)
	}
	if len(others) == 1 {
		return others[0].(object)
	}
	return object{"anyOf": others}
}

// value is the schema of one value of f.
func (s *schemaMaker) value(f field) object {
	if f.enum != nil {
		words := []any{}
		for _, w := range f.enum {
			words = append(words, w)
			// YAML reads 1.1 as a number.
			if n, err := strconv.ParseFloat(w, 64); err == nil {
				words = append(words, n)
			}
		}
		return object{"enum": words}
	}
	o := s.plain(f)
	if f.zero != "" {
		o["not"] = object{"const": 0}
	}
	return f.orWord(o)
}

func (s *schemaMaker) plain(f field) object {
	k := f.kind()
	if k.pattern != "" {
		name := strings.ReplaceAll(k.name, " ", "-")
		s.defs[name] = scalarSchema(k)
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

// scalarSchema is the schema of a value with a unit: a text, or a number where
// the text may be one.
func scalarSchema(k scalarKind) object {
	text, number := object{"type": "string", "pattern": k.pattern}, object{"type": "number", "minimum": 0}
	allowed := regexp.MustCompile(k.pattern)
	switch {
	case !allowed.MatchString("0"):
		text["description"] = k.doc
		return text
	case !allowed.MatchString("1"):
		number = object{"const": 0}
	case k.unit == "ratio":
		number["maximum"] = 1
	case !allowed.MatchString("0.5"):
		number["type"] = "integer"
	}
	return object{"description": k.doc, "anyOf": []any{text, number}}
}

// describe is the doc of f with what the schema's other words cannot say.
func (f *field) describe() string {
	text := f.doc() + f.only()
	if f.axis {
		text += " A list makes it a factor."
	}
	if f.section() == nil && !f.list() && f.typ.Kind() != reflect.Map && f.kind().pattern != "" {
		text += f.limits()
	}
	return text
}

// limits are the least and the largest value in words.
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
