package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/plimsoll-project/plimsoll/internal/atomicfile"
)

// writeBill writes the bill of materials of a binary in CycloneDX 1.6: the modules
// that the linker recorded in it, the Go that built it, and the packages that the
// page's bundle is made of. It carries the commit's time and no serial number, so
// that the same binary has the same bill.
func writeBill(path, binary, version string, when time.Time) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	parts := []cdx.Component{{
		Type: cdx.ComponentTypeLibrary, BOMRef: "go", Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"),
		PackageURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"),
	}}
	for _, m := range info.Deps {
		if m.Replace != nil && m.Replace.Version == "" {
			continue // a folder of this repository
		}
		if m.Replace != nil {
			m = m.Replace
		}
		url := "pkg:golang/" + m.Path + "@" + m.Version
		parts = append(parts, cdx.Component{
			Type: cdx.ComponentTypeLibrary, BOMRef: url, Name: m.Path, Version: m.Version, PackageURL: url,
			Properties: &[]cdx.Property{{Name: "go.sum", Value: m.Sum}},
		})
	}
	bundled, err := bundled("web/package-lock.json")
	if err != nil {
		return err
	}
	for _, p := range bundled {
		url := "pkg:npm/" + strings.Replace(p.name, "@", "%40", 1) + "@" + p.version
		parts = append(parts, cdx.Component{
			Type: cdx.ComponentTypeLibrary, BOMRef: url, Name: p.name, Version: p.version, PackageURL: url,
			Properties: &[]cdx.Property{{Name: "npm.integrity", Value: p.integrity}},
		})
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: when.Format(time.RFC3339), Component: &cdx.Component{
		Type: cdx.ComponentTypeApplication, BOMRef: "plimsoll", Name: "plimsoll", Version: version,
		Licenses: &cdx.Licenses{{Expression: "Apache-2.0 OR MIT"}},
		Hashes:   &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
	}}
	bom.Components = &parts
	return atomicfile.Write(path, func(w io.Writer) error {
		return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
	})
}

// npmPackage is a package of the page's bundle.
type npmPackage struct{ name, version, integrity string }

// bundled are the packages of a package-lock.json that are not for building only.
func bundled(path string) ([]npmPackage, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Version, Integrity string
			Dev, Optional      bool
		}
	}
	if err := json.Unmarshal(data, &lock); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var all []npmPackage
	for at, p := range lock.Packages {
		i := strings.LastIndex(at, "node_modules/")
		if i < 0 || p.Dev || p.Optional {
			continue
		}
		all = append(all, npmPackage{at[i+len("node_modules/"):], p.Version, p.Integrity})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no packages", path)
	}
	slices.SortFunc(all, func(a, b npmPackage) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.version, b.version))
	})
	return slices.Compact(all), nil
}
