package all

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/system"
)

var update = flag.Bool("update", false, "write the generated parts of docs/systems")

// TestInfos checks that the Info of systems agrees with their types.
func TestInfos(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range All() {
		i := s.Info()
		if seen[i.Name] || i.Name == "" || i.Summary == "" || len(i.Modes) == 0 {
			t.Errorf("%q: no unique name, no summary or no modes", i.Name)
		}
		seen[i.Name] = true
		if by, ok := ByName(i.Name); !ok || by.Info().Name != i.Name {
			t.Errorf("%s is not found by its name", i.Name)
		}
		_, starts := s.(system.Starter)
		_, attaches := s.(system.Attacher)
		if starts != i.Has(system.Start) || attaches != i.Has(system.Attach) {
			t.Errorf("%s: modes %v, but starts: %v, attaches: %v", i.Name, i.Modes, starts, attaches)
		}
		if _, ok := s.(system.Embedded); ok != i.Embedded {
			t.Errorf("%s: Info says embedded %v, the type %v", i.Name, i.Embedded, ok)
		}
		if i.Has(system.Start) && !i.Embedded && i.Install == "" {
			t.Errorf("%s: does not say how to install it", i.Name)
		}
		if _, err := os.Stat(filepath.Join("..", strings.ReplaceAll(i.Name, "-", ""), "info.yaml")); err != nil {
			t.Errorf("%s: its package is elsewhere: %v", i.Name, err)
		}
		for _, o := range i.Options {
			if o.Help == "" || !slices.Contains([]string{"string", "int", "bool", "size", "duration", "enum",
				"strings"}, o.Type) {
				t.Errorf("%s: option %s has no help or an unknown type %q", i.Name, o.Name, o.Type)
			}
			if (o.Type == "enum") != (len(o.Enum) > 0) || o.Default != "" && o.Type == "enum" &&
				!slices.Contains(o.Enum, o.Default) {
				t.Errorf("%s: option %s: enum %v, default %q", i.Name, o.Name, o.Enum, o.Default)
			}
			// Fill does not convert defaults, so they must be canonical.
			if _, err := strconv.ParseInt(o.Default, 10, 64); (o.Type == "int" || o.Type == "size") && err != nil {
				t.Errorf("%s: default: %v", i.Name, err)
			}
			if d, err := time.ParseDuration(o.Default); o.Type == "duration" && (err != nil || d.String() != o.Default) {
				t.Errorf("%s: default of %s is %q, canonical %q (%v)", i.Name, o.Name, o.Default, d, err)
			}
		}
	}
	if _, ok := ByName("no such system"); ok {
		t.Error("found what is not there")
	}
}

var generated = regexp.MustCompile(`(?s)<!-- options -->.*<!-- /options -->`)

// TestDocs checks that the tables of the pages agree with the options of the systems.
func TestDocs(t *testing.T) {
	for _, s := range All() {
		i := s.Info()
		path := filepath.Join("..", "..", "docs", "systems", i.Name+".md")
		old, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("%s has no page: %v", i.Name, err)
			continue
		}
		if !generated.Match(old) {
			t.Errorf("%s has no part <!-- options -->…<!-- /options -->", path)
			continue
		}
		page := generated.ReplaceAllLiteral(old, []byte("<!-- options -->\n"+table(i)+"<!-- /options -->"))
		if string(page) == string(old) {
			continue
		}
		if !*update {
			t.Errorf("%s is not what the system takes: run go test ./system/all -update", path)
			continue
		}
		if err := os.WriteFile(path, page, 0o644); err != nil {
			t.Error(err)
		}
	}
}

func table(i system.Info) string {
	var b strings.Builder
	modes := make([]string, len(i.Modes))
	for k, m := range i.Modes {
		modes[k] = string(m)
	}
	fmt.Fprintf(&b, "Modes: %s. Can: %s.\n\n|option|value|default|meaning|\n|---|---|---|---|\n",
		strings.Join(modes, ", "), strings.Join(i.Can, ", "))
	for _, o := range i.Options {
		kind := o.Type
		if len(o.Enum) > 0 {
			kind = strings.Join(o.Enum, " \\| ")
		}
		def := ""
		switch {
		case o.Required:
			def = "*required*"
		case o.Type == "size" && o.Default != "":
			var n int64
			fmt.Sscan(o.Default, &n)
			def = "`" + experiment.Bytes(n).String() + "`"
		case o.Default != "":
			def = "`" + o.Default + "`"
		}
		if o.Secret {
			kind = "environment variable"
		}
		fmt.Fprintf(&b, "|`%s`|%s|%s|%s|\n", o.Name, kind, def, strings.ReplaceAll(o.Help, "|", "\\|"))
	}
	return b.String()
}
