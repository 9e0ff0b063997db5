package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
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
	for _, p := range bundled("web/package-lock.json") {
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

// npmPackage is a package in the page's bundle.
type npmPackage struct{ name, version, integrity string }

// bundled returns the packages in a package-lock.json, except those needed only for the build.
func bundled(path string) (all []npmPackage) {
	var lock struct {
		Packages map[string]struct {
			Version, Integrity string
			Dev, Optional      bool
		}
	}
	check(json.Unmarshal(must(os.ReadFile(path)), &lock))
	for at, p := range lock.Packages {
		i := strings.LastIndex(at, "node_modules/")
		if i < 0 || p.Dev || p.Optional {
			continue
		}
		all = append(all, npmPackage{at[i+len("node_modules/"):], p.Version, p.Integrity})
	}
	if len(all) == 0 {
		check(fmt.Errorf("%s: no packages", path))
	}
	slices.SortFunc(all, func(a, b npmPackage) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.version, b.version))
	})
	return slices.Compact(all)
}
