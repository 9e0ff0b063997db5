// Package docs holds the manual; its tests keep the generated pages true.
package docs

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/experiment"
	scenarios "github.com/plimsoll-project/plimsoll/scenario/all"
	"github.com/plimsoll-project/plimsoll/system/all"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

var must = systemtest.Must

var update = flag.Bool("update", false, "write the generated pages instead of comparing")

// TestExperimentFormat makes the list of values and that of systems; the tables of keys are made by
// TestReference of package experiment.
func TestExperimentFormat(t *testing.T) {
	var values, systems []byte
	src, err := experiment.Schema(engine.Catalog(all.All()))
	must(t, err)
	var schema struct {
		Defs map[string]struct{ Description string } `json:"$defs"`
	}
	must(t, json.Unmarshal(src, &schema))
	for _, name := range slices.Sorted(maps.Keys(schema.Defs)) {
		values = fmt.Appendf(values, "- **%s**: %s\n", strings.ReplaceAll(name, "-", " "),
			schema.Defs[name].Description)
	}
	for _, s := range engine.Catalog(all.All()) {
		systems = fmt.Appendf(systems, ", [`%s`](systems/%s.md)", s.Name, s.Name)
	}
	generate(t, "experiment-format.md", map[string]string{
		"values": string(values), "systems": string(systems[2:]) + ".\n",
	})
}

// TestFindings makes the tables of rules from the rules.
func TestFindings(t *testing.T) {
	seen := map[string]bool{}
	table := func(rules []analysis.Rule) string {
		b := []byte("|rule|tone|title|what to do|\n|---|---|---|---|\n")
		for _, r := range rules {
			b = fmt.Appendf(b, "|`%s`|%s|%s|%s|\n", r.ID, r.Tone, readable(r.Title), readable(r.Advice))
			if seen[r.ID] {
				t.Errorf("there are two rules %s", r.ID)
			}
			seen[r.ID] = true
		}
		return string(b)
	}
	parts := map[string]string{"common": table(analysis.CommonRules())}
	for _, s := range scenarios.All() {
		v := s.View()
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
