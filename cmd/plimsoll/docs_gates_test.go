package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/presets"
	"github.com/plimsoll-project/plimsoll/system/all"
)

var (
	gateWhere = ` where [^'\x60\n]+`
	// wholeGate is a rule as the manual writes one, in code or in a sentence.
	wholeGate = regexp.MustCompile(`(?:^|[\s\x60'])` +
		`((?:p\d+\([a-z_]+\)|[a-z][a-z_0-9]*) ` +
		`(?:[<>]=? \d[\d.]*(?: ?(?:%|[a-zA-Z]+(?:/s)?))?|within \d+% of [a-z]+)(?:` + gateWhere + `)?` +
		`|(?:[a-z]+_[a-z_0-9]+ )?no worse than BASE(?: by \d+%)?(?:` + gateWhere + `)?)`)
	onlyWhere = regexp.MustCompile("`(where [^`]+)`")
)

// TestDocumentedGates hands every gate of the manual to the parser that `plimsoll
// plan` uses, on presets with what the gate speaks of.
func TestDocumentedGates(t *testing.T) {
	t.Parallel()
	refused := []string{"success >= 99.9"} // the manual's example of one that is refused
	found := map[string]bool{}
	for _, doc := range []string{"experiment-format.md", "compare.md", "getting-started.md", "disseminate.md"} {
		text := string(mustRead(t, "../../docs/"+doc))
		var rules []string
		for _, m := range wholeGate.FindAllStringSubmatch(text, -1) {
			rules = append(rules, strings.TrimSpace(m[1]))
		}
		for _, m := range onlyWhere.FindAllStringSubmatch(text, -1) {
			rules = append(rules, "success > 0% "+m[1])
		}
		for _, rule := range rules {
			if found[rule] {
				continue
			}
			found[rule] = true
			err := acceptedBySome(rule)
			if got, want := err == nil, !slices.Contains(refused, rule); got != want {
				t.Errorf("%s: %q: accepted %t, want %t; the last preset says: %v", doc, rule, got, want, err)
			}
		}
	}
	for _, rule := range []string{
		"p90(ttfb) < 200ms", "throughput within 20% of nginx where concurrency == 8", "no worse than BASE by 5%",
	} {
		if !found[rule] {
			t.Errorf("%q of compare.md is not found among %v", rule, found)
		}
	}
}

// acceptedBySome is nil where a preset, as it is or with the levels that the manual's
// examples name, can be planned with this gate.
func acceptedBySome(rule string) (err error) {
	for _, preset := range presets.List() {
		for _, set := range [][]string{
			nil, {"retrieve.concurrency=1,8"}, {"disseminate.faults=[none, [{crash: seeders, at: 50%, for: 5s}]]"},
		} {
			var e *experiment.Experiment
			e, err = experiment.ParseKnowing(preset.Name, preset.Source, append(set, "gates="+rule),
				engine.Catalog(all.All()), known())
			if err == nil {
				_, err = e.Plan()
			}
			if err == nil {
				return nil
			}
		}
	}
	return err
}
