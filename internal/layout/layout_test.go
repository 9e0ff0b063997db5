// Package layout tests that dependencies point in one direction:
//
//	cmd → engine, report → scenario, system, testbed → httpload, workload, record, stats
//
// and three more rules: nothing is registered in init, every package has a comment with its
// purpose, and systems write files on hosts through testbed.Files.
package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/plimsoll-project/plimsoll/"

// allowed lists the top-level folders of this module that the files of a folder may import; the
// first matching prefix applies. Files may always import packages of their own top-level folder.
var allowed = []struct {
	folder string
	may    []string
}{
	{"cmd/", []string{"analysis", "engine", "experiment", "httpload", "internal", "presets", "record", "remote",
		"report", "scenario", "system", "testbed", "workload"}},
	{"remote/", []string{"engine", "experiment", "internal", "record", "scenario", "testbed"}},
	{"release/", []string{"internal"}},
	{"scripts/", nil},
	{"engine/", []string{"analysis", "collect", "experiment", "internal", "record", "scenario", "stats", "system",
		"testbed"}},
	{"report/", []string{"analysis", "collect", "experiment", "internal", "record", "report", "scenario", "stats",
		"system"}},
	{"analysis/", []string{"experiment", "internal", "record", "stats"}},
	{"scenario/", []string{"analysis", "collect", "experiment", "httpload", "internal", "record", "stats", "system",
		"testbed", "workload"}},
	{"collect/", []string{"internal", "record", "system"}},
	{"system/", []string{"internal", "system", "testbed"}},
	{"testbed/", []string{"internal", "record", "testbed"}},
	{"httpload/", []string{"internal", "record", "workload"}},
	{"experiment/", []string{"internal"}},
	{"presets/", nil},
	{"workload/", nil},
	{"record/", []string{"internal", "stats"}},
	{"stats/", []string{"internal"}},
	{"internal/", []string{"internal", "record"}},
}

func TestDependenciesPointOneWay(t *testing.T) {
	each(t, func(path string, f *ast.File) {
		if strings.HasSuffix(path, "_test.go") {
			return // tests may look at a package from above
		}
		folder := filepath.Dir(path) + "/"
		for _, rule := range allowed {
			if !strings.HasPrefix(folder, rule.folder) {
				continue
			}
			for _, i := range f.Imports {
				name, _ := strconv.Unquote(i.Path.Value)
				ours, ok := strings.CutPrefix(name, module)
				if !ok {
					continue
				}
				top, _, _ := strings.Cut(ours, "/")
				own, _, _ := strings.Cut(folder, "/")
				if top != own && !slices.Contains(rule.may, top) {
					t.Errorf("%s imports %s, which is not below it", path, ours)
				}
			}
			return
		}
		t.Errorf("%s is in a folder that the layout does not know", path)
	})
}

func TestNothingIsRegisteredInInit(t *testing.T) {
	each(t, func(path string, f *ast.File) {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s has an init function", path)
			}
		}
	})
}

// onTheirHosts are prefixes of files that run on the host whose files they write, or that write the
// tool's own files.
var onTheirHosts = []string{
	"system/bittorrent/peer.go", "system/boxo/peer.go", "system/boxo/store.go",
	"system/fanout/peer.go", "system/static/static.go", "system/siachain/chain/", "system/mem/", "system/chaincache/",
	"system/install/", "system/siasim/", "system/systemtest/",
}

// Hosts may be remote, so the tool writes their files through testbed.Files.
func TestSystemsWriteThroughTheirHosts(t *testing.T) {
	writes := strings.Fields("Chmod Create CreateTemp Link Mkdir MkdirAll MkdirTemp OpenFile Remove RemoveAll Rename Symlink Truncate WriteFile")
	each(t, func(path string, f *ast.File) {
		if !strings.HasPrefix(path, "system/") || strings.HasSuffix(path, "_test.go") ||
			slices.ContainsFunc(onTheirHosts, func(p string) bool { return strings.HasPrefix(path, p) }) {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(writes, s.Sel.Name) {
				if of, ok := s.X.(*ast.Ident); ok && of.Name == "os" {
					t.Errorf("%s has os.%s: a host has Files", path, s.Sel.Name)
				}
			}
			return true
		})
	})
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	said := map[string]bool{}
	each(t, func(path string, f *ast.File) {
		dir := filepath.Dir(path)
		said[dir] = said[dir] || f.Doc != nil
	})
	for dir, ok := range said {
		if !ok {
			t.Errorf("no file of %s has a package comment", dir)
		}
	}
}

// each calls do for every parsed Go file of the repository.
func each(t *testing.T, do func(path string, f *ast.File)) {
	t.Helper()
	root := "../.."
	set := token.NewFileSet()
	n := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") &&
			path != root) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		n++
		do(filepath.ToSlash(rel), f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 100 {
		t.Fatalf("only %d files were found", n)
	}
}
