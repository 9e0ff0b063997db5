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

// module is one that the binary is linked from, and where its files lie.
type module struct{ path, version, dir string }

// modules are those of the binary for an architecture, without our own folders.
func modules(ctx context.Context, arch string) ([]module, error) {
	text, err := output(ctx, []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + arch}, "go", "list", "-deps",
		"-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{with .Replace}}{{else}}{{.Dir}}{{end}}{{end}}{{end}}", "./cmd/plimsoll")
	if err != nil {
		return nil, err
	}
	var all []module
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) == 3 && f[2] != "" { // a replaced one is a folder of this repository
			all = append(all, module{f[0], f[1], f[2]})
		}
	}
	slices.SortFunc(all, func(a, b module) int { return cmp.Compare(a.path, b.path) })
	return slices.Compact(all), nil
}

// bare are modules that are known to carry no licence file, with what there is
// instead. Whoever publishes a release decides whether that is enough.
func bare() map[string]string {
	return map[string]string{
		"github.com/whyrusleeping/base32": "Copyright 2011 The Go Authors, under Go's own licence (above), " +
			"by the heads of its files; the module carries no text of it.",
	}
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright)([-._].*)?$`)

// licences are the texts that must go with the binary: those of its modules, of Go
// itself and of the packages in the page's bundle (from web/node_modules, which
// `make web` fills). A module without one that is not known to be [bare] is an
// error: a person must check it.
func licences(mods []module, web string) ([]byte, error) {
	var b bytes.Buffer
	add := func(what, dir string) error {
		n := 0
		files, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, f := range files {
			if !f.Type().IsRegular() || !licenceFile.MatchString(f.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "==== %s: %s\n\n%s\n\n", what, f.Name(), bytes.TrimSpace(text))
			n++
		}
		if n == 0 {
			return fmt.Errorf("%s has no licence in its folder", what)
		}
		return nil
	}
	root, err := output(context.Background(), nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	if err := add("Go", root); err != nil {
		return nil, err
	}
	for _, m := range mods {
		if words, ok := bare()[m.path]; ok {
			fmt.Fprintf(&b, "==== %s %s\n\n%s\n\n", m.path, m.version, words)
			fmt.Printf("warning: %s: %s\n", m.path, words)
			continue
		}
		if err := add(m.path+" "+m.version, m.dir); err != nil {
			return nil, err
		}
	}
	packages, err := bundled(filepath.Join(web, "package-lock.json"))
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		if err := add(p.name+" "+p.version, filepath.Join(web, "node_modules", p.name)); err != nil {
			return nil, fmt.Errorf("%w (make web)", err)
		}
	}
	return b.Bytes(), nil
}
