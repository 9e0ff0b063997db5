// Package docs holds the manual; its tests keep the generated pages true.
package docs

import (
	"flag"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/presets"
	scenarios "github.com/plimsoll-project/plimsoll/scenario/all"
	"github.com/plimsoll-project/plimsoll/system/all"
)

var update = flag.Bool("update", false, "write the generated pages instead of comparing")

// catalog has what the page says of each system.
func catalog() experiment.Catalog {
	var c experiment.Catalog
	for _, s := range all.All() {
		info := s.Info()
		spec := experiment.SystemSpec{Name: info.Name, Summary: info.Summary, Baseline: info.Baseline}
		for _, m := range info.Modes {
			spec.Modes = append(spec.Modes, string(m))
		}
		for _, o := range info.Options {
			spec.Options = append(spec.Options, experiment.OptionSpec(o))
		}
		c = append(c, spec)
	}
	return c
}

// TestExperimentFormat makes the tables of keys and options from the structs of the format and from the systems.
func TestExperimentFormat(t *testing.T) {
	var values, factors []byte
	for _, v := range experiment.Values() {
		values = fmt.Appendf(values, "- **%s**: %s\n", v[0], v[1])
	}
	keys := experiment.Keys()
	for _, k := range keys {
		if k.Factor {
			factors = fmt.Appendf(factors, ", `%s`", k.Path)
		}
	}
	parts := map[string]string{
		"values": string(values), "factors": strings.Replace(string(factors[2:]), "sync.vary`", "sync.vary.NAME`", 1) + ".\n",
		"keys": tables(keys, ""), "systems": options(catalog()),
	}
	generate(t, "experiment-format.md", parts)
}

const columns = "| key | value | default | meaning |\n|---|---|---|---|\n"

// tables has the keys of a section, and below them those of its sections.
func tables(keys []experiment.Key, section string) string {
	page, below := columns, ""
	for _, k := range keys {
		name := strings.TrimPrefix(k.Path, section)
		if name == k.Path && section != "" || strings.Contains(name, ".") {
			continue
		}
		value := k.Value
		if k.Factor && !k.Section {
			value += " *(factor)*"
		}
		page += fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, value, defaultOf(k.Default, k.Required), cell(k.Meaning))
		if k.Section {
			below += "\n### `" + k.Path + "`\n\n" + k.Meaning + "\n"
			if k.Short != nil {
				below += "\nA bare value is short for `" + strings.Join(k.Short, "` and `") + "`.\n"
			}
			below += "\n" + tables(keys, k.Path+".")
		}
	}
	return page + below
}

func defaultOf(text string, required bool) string {
	switch {
	case required:
		return "*required*"
	case text != "":
		return "`" + text + "`"
	}
	return ""
}

// options has the options of all systems.
func options(c experiment.Catalog) string {
	var page string
	for _, s := range c {
		page += fmt.Sprintf("### `%s`\n\n%s. Modes: `%s`.\n", s.Name, strings.TrimSuffix(s.Summary, "."), strings.Join(s.Modes, "`, `"))
		if len(s.Options) > 0 {
			page += "\n" + strings.Replace(columns, "key", "option", 1)
		}
		for _, o := range s.Options {
			value := o.Noun()
			if o.Secret {
				value = "name of an environment variable"
			}
			page += fmt.Sprintf("| `%s` | %s | %s | %s |\n", o.Name, value, defaultOf(o.DefaultText(), o.Required), cell(o.Help))
		}
		page += "\n"
	}
	return page
}

// TestFindings makes the tables of rules from the rules.
func TestFindings(t *testing.T) {
	seen := map[string]bool{}
	table := func(rules []analysis.Rule) string {
		b := []byte("| rule | tone | title | what to do |\n|---|---|---|---|\n")
		for _, r := range rules {
			b = fmt.Appendf(b, "| `%s` | %s | %s | %s |\n", r.ID, r.Tone, readable(r.Title), readable(r.Advice))
			if seen[r.ID] {
				t.Errorf("there are two rules %s", r.ID)
			}
			seen[r.ID] = true
		}
		return string(b)
	}
	parts := map[string]string{"common": table(analysis.CommonRules())}
	for _, s := range scenarios.All() {
		v := scenarios.ViewOf(s.Name())
		if v == nil {
			t.Errorf("scenario %s has no view", s.Name())
			continue
		}
		if len(v.Rules) > 0 && s.Name() != "collect" { // those of upload
			parts[s.Name()] = table(v.Rules)
		}
	}
	generate(t, "findings.md", parts)
}

var (
	plural   = regexp.MustCompile(`{{plural [^"]*"[^"]*" "([^"]*)"}}`)
	variable = regexp.MustCompile(`{{[^}]*}}`)
)

// readable is a rule's template for people: "N trials" for a count, "…" for the rest.
func readable(template string) string {
	return cell(variable.ReplaceAllString(plural.ReplaceAllString(template, "N $1"), "…"))
}

// The presets are written for the systems as they are.
func TestPresets(t *testing.T) {
	c := catalog()
	for i := range c {
		c[i].HTTP, c[i].Spreads, c[i].Follows = true, true, true
	}
	for _, p := range presets.List() {
		e, err := experiment.Parse(p.Name, p.Source, nil, c)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if _, err := e.Plan(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	p, err := presets.Get("boost-retrieval")
	if err != nil {
		t.Fatal(err)
	}
	set := []string{"systems=nginx,boost", "systems.boost.with.url=http://provider:7777", "systems.boost.with.list=pieces.txt"}
	if _, err := experiment.Parse(p.Name, p.Source, set, c); err != nil {
		t.Errorf("%v", err)
	}
}
