package findings

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sources are the folders in which findings are made.
var sources = []string{".", ".."}

// made are the rules that the sources make findings of, here or outside of this
// package, and where, with the tones that stand beside the name.
func made(t *testing.T) (here, outside map[string]string, tones map[string][]Tone) {
	t.Helper()
	here, outside, tones = map[string]string{}, map[string]string{}, map[string][]Tone{}
	set := token.NewFileSet()
	for _, dir := range sources {
		at := here
		if dir != "." {
			at = outside
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				lit, ok := n.(*ast.CompositeLit)
				if !ok {
					return true
				}
				name, tone := field(lit, "Rule"), field(lit, "Tone")
				if name == nil || tone == nil || field(lit, "Title") == nil && field(lit, "Text") == nil {
					return true // not a finding
				}
				v, ok := name.(*ast.BasicLit)
				if !ok {
					t.Errorf("%s: the name of a rule is not spelled out", set.Position(lit.Pos()))
					return true
				}
				rule, _ := strconv.Unquote(v.Value)
				at[rule] = set.Position(lit.Pos()).String()
				if id, ok := tone.(*ast.Ident); ok {
					tones[rule] = append(tones[rule], Tone(strings.ToLower(id.Name)))
				}
				return true
			})
		}
	}
	return here, outside, tones
}

func field(lit *ast.CompositeLit, name string) ast.Expr {
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok && id.Name == name {
				return kv.Value
			}
		}
	}
	return nil
}

func TestCatalogHasEveryRule(t *testing.T) {
	here, outside, tones := made(t)
	if len(here) < 50 {
		t.Fatalf("only %d rules were found in the sources", len(here))
	}
	tried := cases()
	listed := map[string]bool{}
	for _, g := range Catalog() {
		for _, r := range g.Rules {
			if listed[r.Name] {
				t.Errorf("%s is listed twice", r.Name)
			}
			listed[r.Name] = true
			where, ok := here[r.Name]
			if !ok {
				t.Errorf("%s is in the catalogue, and no finding is made of it", r.Name)
				continue
			}
			if _, has := tried[r.Name]; !has {
				t.Errorf("%s: %s has no case; put one where it is true and one where it is false beside the tests of its rule", where, r.Name)
			}
			for _, tone := range tones[r.Name] {
				if !slices.Contains(r.Tones, tone) {
					t.Errorf("%s: the catalogue has no tone %s", where, tone)
				}
			}
			for _, text := range []string{r.Looks, r.When, r.Try} {
				if text != "" && (!strings.HasSuffix(text, ".") || strings.HasSuffix(text, "..")) || text == "" && (r.Looks == "" || r.When == "") {
					t.Errorf("%s: %q is no sentence", r.Name, text)
				}
			}
			if slices.ContainsFunc(r.Tones, func(t Tone) bool { return t == Warn || t == Bad }) && r.Try == "" {
				t.Errorf("%s warns, and says nothing of what to try", r.Name)
			}
		}
	}
	for rule, where := range here {
		if !listed[rule] {
			t.Errorf("%s: %s is not in the catalogue", where, rule)
		}
	}
	for rule, where := range outside {
		t.Errorf("%s: a finding of %s is made outside of this package: rules are functions of figures, which can be tried with cases", where, rule)
	}
}

func TestTry(t *testing.T) {
	if got := Try("deadlines"); !strings.Contains(got, "limits.deadline") {
		t.Errorf("%q", got)
	}
	if got := Try("of no rule"); got != "" {
		t.Errorf("%q", got)
	}
}
