// Package presets holds the experiment files that come with the binary. Comments in each explain
// which study it follows, what it changes and why.
package presets

import (
	"embed"
	"fmt"
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

// Names returns the names of all presets, sorted.
func Names() []string {
	var names []string
	entries, _ := files.ReadDir(".") // embedded at build time
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// List returns all presets, by name.
func List() []Preset {
	var all []Preset
	for _, name := range Names() {
		p, _ := Get(name)
		all = append(all, p)
	}
	return all
}

// Get returns the preset with that name.
func Get(name string) (Preset, error) {
	src, err := files.ReadFile(name + ".yaml")
	if err != nil {
		return Preset{}, fmt.Errorf("no preset is named %q", name)
	}
	header, _, _ := strings.Cut(string(src), "\n")
	_, summary, _ := strings.Cut(header, ": ")
	return Preset{name, summary, src}, nil
}
