package experiment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Every key has a description, and its default, limits and enumeration are values that the key
// accepts.
func TestTable(t *testing.T) {
	var walk func(typ reflect.Type, path string)
	walk = func(typ reflect.Type, path string) {
		for _, f := range tableOf(typ).fields {
			p := join(path, f.key)
			if f.doc == "" || !strings.HasSuffix(f.doc, ".") {
				t.Errorf("%s: its doc is no sentence: %q", p, f.doc)
			}
			if f.kind().name == "" {
				t.Errorf("%s: kinds.tsv has no %s", p, f.typ)
			}
			if s := f.section(); s != nil {
				walk(s, p)
				continue
			}
			if f.list() || f.typ.Kind() == reflect.Map {
				continue
			}
			for _, text := range append([]string{f.def, f.min, f.max, f.zero}, f.enum...) {
				v := reflect.New(f.typ).Elem()
				if text == "" {
					continue
				}
				if err := f.parse(text, v); err != nil {
					t.Errorf("%s: %q: %v", p, text, err)
				}
			}
		}
	}
	walk(reflect.TypeFor[Experiment](), "")
}

// TestReference generates the tables of keys in the manual from the structs of the format; with
// -update it writes them.
func TestReference(t *testing.T) {
	const page = "../docs/experiment-format.md"
	var keys []referenceKey
	walk(reflect.TypeFor[Experiment](), "", func(path string, f field) { keys = append(keys, referenceKey{f, path}) })
	part := "<!-- keys -->\n" + keyTables(keys, "", map[string]string{}) + "<!-- /keys -->"
	between := regexp.MustCompile(`(?s)<!-- keys -->\n.*<!-- /keys -->`)
	golden(t, page, between.ReplaceAllLiteral(read(t, page), []byte(part)))
}

// referenceKey is a key of the format with its dotted path.
type referenceKey struct {
	field
	path string
}

// valueText returns the type of f for the table of keys.
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

// keyTables returns the table of the keys of a section, followed by those of its subsections. seen
// maps the tables written before to their sections.
func keyTables(keys []referenceKey, section string, seen map[string]string) string {
	var page, below string
	for _, k := range keys {
		name := strings.TrimPrefix(k.path, section)
		if name == k.path && section != "" || strings.Contains(name, ".") {
			continue
		}
		factor, inner := "", k.section()
		if k.label != "" || k.path == varyPath {
			factor = " *(factor)*"
		}
		if inner == nil {
			value := k.def
			switch {
			case k.required:
				value = "*required*"
			case value != "":
				value = "`" + value + "`"
			}
			page += fmt.Sprintf("|`%s`|%s|%s|%s|\n", name, k.valueText()+factor, value,
				strings.ReplaceAll(k.meaning(), "|", "\\|"))
			continue
		}
		below += "\n### `" + k.path + "`\n\n" + k.meaning()
		if k.list() {
			below += " A list."
		}
		below += factor
		if k.required {
			below += " Required."
		}
		if short := tableOf(inner).short; short != "" {
			below += " A bare value is short for `" + short + "`."
		}
		table := keyTables(keys, k.path+".", seen)
		if first := seen[table]; first != "" {
			table = "Keys as in [`" + first + "`](#" + strings.ReplaceAll(first, ".", "") + ").\n"
		} else {
			seen[table] = k.path
		}
		below += "\n\n" + table
	}
	return "|key|value|default|meaning|\n|---|---|---|---|\n" + page + below
}

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	// Presets use systems that the other tests do not need.
	catalog := testCatalog()
	for _, name := range []string{"tahoe", "sftp", "scp", "deluge", "bittorrent", "codex", "sia-chain", "siad"} {
		catalog = append(catalog, SystemSpec{Name: name, Modes: []string{"start"}})
	}
	src, err := Schema(catalog)
	must(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(src))
	must(t, err)
	c := jsonschema.NewCompiler()
	must(t, c.AddResource("experiment.json", doc))
	s, err := c.Compile("experiment.json")
	must(t, err)
	return s
}

// validate checks a YAML file against the schema as an editor would.
func validate(t *testing.T, s *jsonschema.Schema, src []byte) error {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(bytes.TrimPrefix(src, []byte("\uFEFF")), &v); err != nil {
		return err
	}
	b, err := json.Marshal(v)
	must(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	must(t, err)
	return s.Validate(doc)
}

func TestSchema(t *testing.T) {
	s := schema(t)
	for _, path := range append(files(t, "testdata/good/*.yaml"), files(t, "../presets/*.yaml")...) {
		if err := validate(t, s, read(t, path)); err != nil {
			t.Errorf("%s is good, the schema says: %v", path, err)
		}
	}
	seen, bad := 0, files(t, "testdata/bad/*.yaml")
	for _, path := range bad {
		if validate(t, s, read(t, path)) != nil {
			seen++ // other errors are between values, or in options of systems
		}
	}
	if seen < len(bad)/4 {
		t.Errorf("the schema sees %d of %d bad files", seen, len(bad))
	}
	for _, src := range []string{"scenario: retreive", "scenario: retrieve\nsystems: [ngnix]",
		"scenario: retrieve\nsystems: [nginx]\nretrieve: {concurency: 1}",
		"scenario: retrieve\nsystems: [nginx]\nlink: {rate: 100MB}", "scenario: retrieve\nsystems: [nginx]\ndata: " +
			"{size: 10M}"} {
		if validate(t, s, []byte(src)) == nil {
			t.Errorf("the schema accepts %q", src)
		}
	}
}

// Presets and good files always parse without an error, and no input makes Parse panic.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml", "../presets/*.yaml"} {
		for _, p := range files(f, pattern) {
			f.Add(read(f, p), "retrieve.concurrency=1,2")
			f.Add(read(f, p), "systems=nginx,boxo")
		}
	}
	f.Fuzz(func(t *testing.T, src []byte, set string) {
		e, err := Parse("fuzz.yaml", src, []string{set}, testCatalog())
		if err != nil {
			if errs, ok := err.(Errors); !ok || len(errs) == 0 || errs.Error() == "" {
				t.Fatalf("error is %T %v", err, err)
			}
			return
		}
		if _, err := e.Plan(); err != nil {
			t.Fatalf("parsed, but has no plan: %v", err)
		}
	})
}
