// Package docs holds the manual; its tests keep the generated pages true.
package docs

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
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

func TestExperimentFormat(t *testing.T) {
	got, err := experiment.Reference(catalog())
	if err != nil {
		t.Fatal(err)
	}
	generated(t, "experiment-format.md", got)
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

// generated compares a page with what it is made from.
func generated(t *testing.T, page string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(page, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the source says now; run: go test ./docs -update", page)
	}
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
