package docs

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/plimsoll-project/plimsoll/"

// parts are the folders of the picture, with what they are.
var parts = map[string]string{
	"cmd":        "the command",
	"engine":     "runs a plan",
	"analysis":   "judges trials and runs",
	"report":     "page and text",
	"scenario":   "the questions",
	"system":     "the storage systems",
	"collect":    "polls of a system",
	"testbed":    "hosts, links, processes",
	"httpload":   "HTTP load generator",
	"experiment": "file format and plan",
	"workload":   "objects and arrivals",
	"record":     "run.db",
	"remote":     "machines elsewhere",
	"stats":      "statistics",
	"presets":    "built-in experiments",
	"internal":   "terminal, files",
}

// TestPicture holds the picture to the imports of the code without its tests:
// each folder is in it, each arrow is an import, and each import is an arrow or
// a way along arrows.
func TestPicture(t *testing.T) {
	imports := importsOfFolders(t)
	for _, tool := range []string{"bench", "release", "scripts"} { // for those who make plimsoll; no part of it
		delete(imports, tool)
	}
	for folder := range imports {
		if parts[folder] == "" {
			t.Errorf("folder %s is not in the picture: say in docs/architecture_test.go what it is", folder)
		}
	}
	var b strings.Builder
	b.WriteString("```mermaid\nflowchart TD\n")
	for _, folder := range slices.Sorted(maps.Keys(parts)) {
		if _, ok := imports[folder]; !ok {
			t.Errorf("folder %s of the picture has no code", folder)
		}
		fmt.Fprintf(&b, "    %s[\"<b>%s</b><br>%s\"]\n", folder, folder, parts[folder])
	}
	for _, from := range slices.Sorted(maps.Keys(imports)) {
		for _, to := range slices.Sorted(maps.Keys(imports[from])) {
			if !reaches(imports, from, to, true) {
				fmt.Fprintf(&b, "    %s --> %s\n", from, to)
			}
			if reaches(imports, to, from, false) {
				t.Errorf("%s and %s import each other", from, to)
			}
		}
	}
	b.WriteString("```\n")
	generate(t, "architecture.md", map[string]string{"picture": b.String()})
}

// importsOfFolders are the imports between the top folders of the repository.
func importsOfFolders(t *testing.T) map[string]map[string]bool {
	t.Helper()
	imports := map[string]map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != ".." && (d.Name() == "node_modules" || d.Name() == "testdata" ||
			strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		from, _, _ := strings.Cut(strings.TrimPrefix(filepath.ToSlash(path), "../"), "/")
		if imports[from] == nil {
			imports[from] = map[string]bool{}
		}
		for _, i := range f.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if ours, ok := strings.CutPrefix(name, module); ok {
				if to, _, _ := strings.Cut(ours, "/"); to != from {
					imports[from][to] = true
				}
			}
		}
		return nil
	})
	must(t, err)
	return imports
}

// reaches reports whether a way leads from one folder to another; around asks for
// one besides the direct arrow.
func reaches(imports map[string]map[string]bool, from, to string, around bool) bool {
	for next := range imports[from] {
		if next == to && !around || next != to && reaches(imports, next, to, false) {
			return true
		}
	}
	return false
}
