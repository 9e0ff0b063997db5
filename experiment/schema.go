package experiment

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

type object = map[string]any

// Schema returns the JSON Schema (draft 2020-12) of the format, for editors; the names of systems
// come from the catalog. The schema checks single values; Parse checks the rest, and the options of
// systems.
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
