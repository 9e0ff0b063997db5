// Package presets holds the experiment files that come with the binary. Comments in each explain
// which study it follows, what it changes and why.
package presets

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed *.yaml
var files embed.FS

// Preset is one embedded experiment file.
type Preset struct {
	Name    string // "quickstart"
	Summary string // the first sentence of its header
	Source  []byte
}

// List returns all presets, by name.
func List() []Preset {
	entries, _ := files.ReadDir(".") // embedded at build time
	var all []Preset
	for _, e := range entries {
		src, _ := files.ReadFile(e.Name())
		all = append(all, Preset{strings.TrimSuffix(e.Name(), path.Ext(e.Name())), summary(string(src)), src})
	}
	return all
}

// Names returns the names of all presets.
func Names() []string {
	var names []string
	for _, p := range List() {
		names = append(names, p.Name)
	}
	return names
}

// Get returns the preset with that name.
func Get(name string) (Preset, error) {
	all := List()
	if i := slices.IndexFunc(all, func(p Preset) bool { return p.Name == name }); i >= 0 {
		return all[i], nil
	}
	return Preset{}, fmt.Errorf("no preset is named %q; there are %s", name, strings.Join(Names(), ", "))
}

// summary returns the first line of the header, without the name before the colon.
func summary(src string) string {
	line, _, _ := strings.Cut(src, "\n")
	_, about, _ := strings.Cut(line, ": ")
	return about
}
