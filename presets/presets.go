// Package presets holds the experiment files that come with the binary, each
// commented: which study it follows, what it changes and why.
package presets

import (
	"embed"
	"fmt"
	"path"
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
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // embedded at build time
	}
	var all []Preset
	for _, e := range entries {
		src, err := files.ReadFile(e.Name())
		if err != nil {
			panic(err)
		}
		all = append(all, Preset{strings.TrimSuffix(e.Name(), path.Ext(e.Name())), summary(string(src)), src})
	}
	return all
}

// Get returns the preset of that name.
func Get(name string) (Preset, error) {
	var names []string
	for _, p := range List() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Preset{}, fmt.Errorf("no preset is named %q; there are %s", name, strings.Join(names, ", "))
}

// summary is the header's first line, without the mark of a comment and the
// name before the colon.
func summary(src string) string {
	line, _, _ := strings.Cut(src, "\n")
	line = strings.TrimSpace(strings.TrimPrefix(line, "#"))
	if _, after, ok := strings.Cut(line, ": "); ok {
		return after
	}
	return line
}
