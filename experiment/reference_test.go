package experiment

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Every key is described, and its default, limits and enumeration are values
// that the key accepts.
func TestTable(t *testing.T) {
	var walk func(typ reflect.Type, path string)
	walk = func(typ reflect.Type, path string) {
		for _, f := range tableOf(typ).fields {
			p := join(path, f.key)
			if f.doc() == "" || !strings.HasSuffix(f.doc(), ".") {
				t.Errorf("%s: its doc is no sentence: %q", p, f.doc())
			}
			if f.axis && f.label == "" {
				t.Errorf("%s: a factor without a label", p)
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

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	// The presets use systems that the other tests do without.
	src, err := Schema(append(testCatalog(), SystemSpec{Name: "tahoe", Modes: []string{"start"}},
		SystemSpec{Name: "sftp", Modes: []string{"start"}}, SystemSpec{Name: "scp", Modes: []string{"start"}},
		SystemSpec{Name: "deluge", Modes: []string{"start"}}, SystemSpec{Name: "bittorrent", Modes: []string{"start"}},
		SystemSpec{Name: "codex", Modes: []string{"start"}},
		SystemSpec{Name: "sia-chain"}, SystemSpec{Name: "siad"}))
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
			seen++ // the others are wrong between values, or in options of systems
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

// Presets and good files parse without an error however often, and no input
// makes Parse panic.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml", "../presets/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, p := range paths {
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
