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

// modules are those of the binary for an architecture, without our own.
func modules(ctx context.Context, arch string) ([]module, error) {
	text, err := output(ctx, []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + arch}, "go", "list", "-deps",
		"-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}", "./cmd/plimsoll")
	if err != nil {
		return nil, err
	}
	var all []module
	for line := range strings.Lines(text) {
		if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) == 3 {
			all = append(all, module{f[0], f[1], f[2]})
		}
	}
	slices.SortFunc(all, func(a, b module) int { return cmp.Compare(a.path, b.path) })
	return slices.Compact(all), nil
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright)([-._].*)?$`)

// licences are the texts that must go with the binary: those of its modules, of Go
// itself and of the packages in the page's bundle (from web/node_modules, which
// `make web` fills). A module without one is an error: nobody may ship it.
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
		if strings.HasPrefix(m.version, "v0.0.0-00010101") || m.version == "" {
			continue // a folder of this repository
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
