package docs

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/report"
)

// TestJSONIsDocumented: each name in the JSON of a comparison is on its page. (That
// of a report, path by path, is a test of package report.)
func TestJSONIsDocumented(t *testing.T) {
	for page, types := range map[string][]reflect.Type{
		"compare.md": {reflect.TypeFor[report.RunComparison]()},
	} {
		text := read(t, page)
		names := map[string]bool{}
		for _, typ := range types {
			jsonNames(typ, names, map[reflect.Type]bool{})
		}
		if len(names) < 10 {
			t.Errorf("%s: only %d names", page, len(names))
		}
		for name := range names {
			if !regexp.MustCompile("`[^`\n]*\\b" + name + "\\b[^`\n]*`").MatchString(text) {
				t.Errorf("%s does not say what %s is", page, name)
			}
		}
	}
}

// jsonNames are the keys that a type is written with; of types whose own page is
// docs/results.md (a run, the definition of a metric) only the name.
func jsonNames(t reflect.Type, into map[string]bool, seen map[reflect.Type]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		jsonNames(t.Elem(), into, seen)
	case reflect.Struct:
		if seen[t] || t.PkgPath() == "time" || strings.HasSuffix(t.PkgPath(), "/record") {
			return
		}
		seen[t] = true
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !f.IsExported() || name == "-" {
				continue
			}
			if name != "" {
				into[name] = true
				if strings.ToLower(name) != name {
					into[name+" (which is not in snake_case)"] = true
				}
			}
			if f.Type != reflect.TypeFor[report.Run]() {
				jsonNames(f.Type, into, seen)
			}
		}
	}
}
