package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// writeBill writes the bill of materials of a binary in CycloneDX 1.6: the modules that the linker
// recorded in it, its version of Go, and the packages in the page's bundle. It contains the
// commit's time and no serial number, so that the same binary has the same bill.
func writeBill(path, binary, version string, when time.Time) {
	info := must(buildinfo.ReadFile(binary))
	std := strings.TrimPrefix(info.GoVersion, "go")
	parts := []cdx.Component{{Type: cdx.ComponentTypeLibrary, BOMRef: "go", Name: "std", Version: std,
		PackageURL: "pkg:golang/std@" + std}}
	for _, m := range info.Deps {
		if m.Replace != nil && m.Replace.Version == "" {
			continue // a directory of this repository
		}
		if m.Replace != nil {
			m = m.Replace
		}
		parts = append(parts, library("pkg:golang/"+m.Path, m.Path, m.Version, "go.sum", m.Sum))
	}
	for _, p := range bundled("web") {
		url := "pkg:npm/" + strings.Replace(p.name, "@", "%40", 1)
		parts = append(parts, library(url, p.name, p.version, "npm.integrity", p.integrity))
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: when.Format(time.RFC3339), Component: &cdx.Component{
		Type: cdx.ComponentTypeApplication, BOMRef: "plimsoll", Name: "plimsoll", Version: version,
		Licenses: &cdx.Licenses{{Expression: "Apache-2.0 OR MIT"}},
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256,
			Value: fmt.Sprintf("%x", sha256.Sum256(must(os.ReadFile(binary))))}},
	}}
	bom.Components = &parts
	var b bytes.Buffer
	check(cdx.NewBOMEncoder(&b, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6))
	check(os.WriteFile(path, b.Bytes(), 0o644))
}

// library returns a component of the binary with its checksum.
func library(url, name, version, checksum, value string) cdx.Component {
	url += "@" + version
	return cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: url, Name: name, Version: version, PackageURL: url,
		Properties: &[]cdx.Property{{Name: checksum, Value: value}}}
}

// module is a module linked into the binary, or a package in the page's bundle; dir is the directory of its files.
type module struct{ name, version, integrity, dir string }

// bundled returns the packages in the package-lock.json of web, except those needed only for the build.
// `make web` fills their directories.
func bundled(web string) (all []module) {
	var lock struct {
		Packages map[string]struct {
			Version, Integrity string
			Dev, Optional      bool
		}
	}
	check(json.Unmarshal(must(os.ReadFile(filepath.Join(web, "package-lock.json"))), &lock))
	for at, p := range lock.Packages {
		i := strings.LastIndex(at, "node_modules/")
		if i < 0 || p.Dev || p.Optional {
			continue
		}
		name := at[i+len("node_modules/"):]
		all = append(all, module{name, p.Version, p.Integrity, filepath.Join(web, "node_modules", name)})
	}
	if len(all) == 0 {
		check(fmt.Errorf("%s: no packages", web))
	}
	return sorted(all)
}

// sorted returns modules by name and version, each once.
func sorted(all []module) []module {
	slices.SortFunc(all, func(a, b module) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.version, b.version))
	})
	return slices.Compact(all)
}

// modules returns the modules of the binary for an architecture, without directories of this
// repository.
func modules(ctx context.Context, arch string) (all []module) {
	text := output(ctx, []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + arch}, "go", "list", "-deps",
		"-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t"+
			"{{with .Replace}}{{else}}{{.Dir}}{{end}}{{end}}{{end}}", "./cmd/plimsoll")
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) == 3 && f[2] != "" { // a replaced module is a directory of this repository
			all = append(all, module{name: f[0], version: f[1], dir: f[2]})
		}
	}
	return sorted(all)
}

// bare are modules that are known to have no licence file, with the text to print instead. The
// publisher of a release decides whether that is enough.
var bare = map[string]string{
	"github.com/whyrusleeping/base32": "Copyright 2011 The Go Authors, under Go's own licence (above), " +
		"by the heads of its files; the module carries no text of it.",
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright)([-._].*)?$`)

// licences returns the licence texts that must accompany the binary. A module without a licence that
// is not known to be [bare] is an error: a person must check it.
func licences(all []module) []byte {
	var b bytes.Buffer
	for _, m := range all {
		what := strings.TrimSpace(m.name + " " + m.version)
		if words, ok := bare[m.name]; ok {
			fmt.Fprintf(&b, "==== %s\n\n%s\n\n", what, words)
			fmt.Printf("warning: %s: %s\n", m.name, words)
			continue
		}
		files, err := os.ReadDir(m.dir)
		if err != nil {
			check(fmt.Errorf("licences of %s: %w (make web)", what, err))
		}
		before := b.Len()
		for _, f := range files {
			if f.Type().IsRegular() && licenceFile.MatchString(f.Name()) {
				text := must(os.ReadFile(filepath.Join(m.dir, f.Name())))
				fmt.Fprintf(&b, "==== %s: %s\n\n%s\n\n", what, f.Name(), bytes.TrimSpace(text))
			}
		}
		if b.Len() == before {
			check(fmt.Errorf("%s has no licence in its folder", what))
		}
	}
	return b.Bytes()
}
