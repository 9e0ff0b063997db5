package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// module is a module linked into the binary; dir is the directory of its files.
type module struct{ path, version, dir string }

// modules returns the modules of the binary for an architecture, without directories of this
// repository.
func modules(ctx context.Context, arch string) (all []module) {
	text := output(ctx, []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + arch}, "go", "list", "-deps",
		"-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{with .Replace}}{{else}}{{.Dir}}{{end}}{{end}}{{end}}",
		"./cmd/plimsoll")
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) == 3 && f[2] != "" { // a replaced module is a directory of this repository
			all = append(all, module{f[0], f[1], f[2]})
		}
	}
	slices.SortFunc(all, func(a, b module) int { return cmp.Compare(a.path, b.path) })
	return slices.Compact(all)
}

// bare returns modules that are known to have no licence file, with the text to print instead. The
// publisher of a release decides whether that is enough.
func bare() map[string]string {
	return map[string]string{
		"github.com/whyrusleeping/base32": "Copyright 2011 The Go Authors, under Go's own licence (above), " +
			"by the heads of its files; the module carries no text of it.",
	}
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright)([-._].*)?$`)

// licences returns the licence texts that must accompany the binary: those of its modules, of Go
// itself and of the packages in the page's bundle (from web/node_modules, which `make web` fills).
// A module without a licence that is not known to be [bare] is an error: a person must check it.
func licences(mods []module, web string) []byte {
	var b bytes.Buffer
	add := func(what, dir string) {
		before := b.Len()
		for _, f := range must(os.ReadDir(dir)) {
			if f.Type().IsRegular() && licenceFile.MatchString(f.Name()) {
				text := must(os.ReadFile(filepath.Join(dir, f.Name())))
				fmt.Fprintf(&b, "==== %s: %s\n\n%s\n\n", what, f.Name(), bytes.TrimSpace(text))
			}
		}
		if b.Len() == before {
			check(fmt.Errorf("%s has no licence in its folder", what))
		}
	}
	add("Go", output(context.Background(), nil, "go", "env", "GOROOT"))
	for _, m := range mods {
		if words, ok := bare()[m.path]; ok {
			fmt.Fprintf(&b, "==== %s %s\n\n%s\n\n", m.path, m.version, words)
			fmt.Printf("warning: %s: %s\n", m.path, words)
			continue
		}
		add(m.path+" "+m.version, m.dir)
	}
	for _, p := range bundled(filepath.Join(web, "package-lock.json")) {
		dir := filepath.Join(web, "node_modules", p.name)
		if _, err := os.Stat(dir); err != nil {
			check(fmt.Errorf("%w (make web)", err))
		}
		add(p.name+" "+p.version, dir)
	}
	return b.Bytes()
}
