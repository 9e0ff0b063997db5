package docs

import (
	"fmt"
	"maps"
	"os/exec"
	"slices"
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
	for _, tool := range []string{"docs", "release", "scripts"} { // for those who make plimsoll; no part of it
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
	list := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "./...")
	list.Dir = ".."
	out, err := list.Output()
	must(t, err)
	imports := map[string]map[string]bool{}
	for line := range strings.Lines(string(out)) {
		from := ""
		for i, path := range strings.Fields(line) {
			ours, is := strings.CutPrefix(path, module)
			top, _, _ := strings.Cut(ours, "/")
			if i == 0 {
				from = top
			}
			if imports[from] == nil {
				imports[from] = map[string]bool{}
			}
			if is && top != from {
				imports[from][top] = true
			}
		}
	}
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
