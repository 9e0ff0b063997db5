package docs

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
)

// TestSummaryIsDocumented: each path of summary.json is in a row of its table, and each
// row has such paths alone.
func TestSummaryIsDocumented(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "results.md"), "## summary.json")
	table, _, _ = strings.Cut(table, "\n### ")
	rows := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\|(`[^|]+`)\\|").FindAllStringSubmatch(table, -1) {
		first := ""
		for name := range strings.SplitSeq(strings.ReplaceAll(m[1], "`", ""), ", ") {
			if first == "" {
				first = name
			} else if strings.HasPrefix(name, ".") { // beside the first of its row
				name = first[:strings.LastIndex(first, ".")] + name
			}
			rows[name] = true
		}
	}
	paths := map[string]bool{}
	jsonPaths(reflect.TypeFor[analysis.Result](), "", func(path, name string, t reflect.Type) bool {
		inner := t
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice || inner.Kind() == reflect.Map {
			inner = inner.Elem()
		}
		leaf := inner.Kind() != reflect.Struct || inner.PkgPath() == "time"
		if leaf {
			paths[path] = true
		}
		return !leaf
	})
	for path := range paths {
		if !rows[path] {
			t.Errorf("results.md does not say what %s is", path)
		}
		if strings.ToLower(path) != path {
			t.Errorf("%s is not in snake_case", path)
		}
	}
	for row := range rows {
		if !paths[row] {
			t.Errorf("results.md describes %s, which summary.json does not have", row)
		}
	}
}

// TestComparisonIsDocumented: each name in the JSON of a comparison is on its page.
func TestComparisonIsDocumented(t *testing.T) {
	text := read(t, "compare.md")
	n := 0
	jsonPaths(reflect.TypeFor[analysis.Comparison](), "", func(_, name string, t2 reflect.Type) bool {
		if n++; !regexp.MustCompile("`[^`\n]*\\b" + name + "\\b[^`\n]*`").MatchString(text) {
			t.Errorf("compare.md does not say what %s is", name)
		}
		// A run and the definition of a metric are described in results.md.
		return t2 != reflect.TypeFor[analysis.Run]() && !strings.HasSuffix(t2.String(), "record.Metric")
	})
	if n < 10 {
		t.Errorf("only %d names", n)
	}
}

// jsonPaths visits what a type is written as: lists end in [], the keys of an object
// that has any are *. Where visit returns false it does not go deeper.
func jsonPaths(t reflect.Type, prefix string, visit func(path, name string, t reflect.Type) bool) {
	switch t.Kind() {
	case reflect.Pointer:
		jsonPaths(t.Elem(), prefix, visit)
	case reflect.Slice:
		jsonPaths(t.Elem(), prefix+"[]", visit)
	case reflect.Map:
		jsonPaths(t.Elem(), prefix+".*", visit)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.Anonymous && name == "":
				jsonPaths(f.Type, prefix, visit)
			case f.IsExported() && name != "-":
				path := strings.TrimPrefix(prefix+"."+name, ".")
				if visit(path, name, f.Type) {
					jsonPaths(f.Type, path, visit)
				}
			}
		}
	}
}
