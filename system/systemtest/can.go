package systemtest

import (
	"slices"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
)

// protocol are words of Info.Can that no type says.
var protocol = []string{"https", "h2", "car"}

// testCan holds what a system says before it is started to what its nodes are.
func testCan(t *testing.T, s Suite, c system.Cluster) {
	can := s.System.Info().Can
	for _, word := range s.Truths.Without {
		if !slices.Contains(can, word) {
			t.Errorf("these options take %q away, which Info.Can does not have", word)
		}
	}
	for i, n := range c.Nodes() {
		is := system.Abilities(n)
		if c.Identity()["connections"] == "fresh" {
			if slices.Contains(is, "fresh") {
				t.Errorf("node %d: Identity says that connections are always fresh, and it has Redial", i)
			}
			is = append(is, "fresh")
		}
		for _, word := range is {
			if !slices.Contains(can, word) {
				t.Errorf("node %d can %q, which Info.Can does not have", i, word)
			}
			if slices.Contains(s.Truths.Without, word) {
				t.Errorf("node %d can %q, which these options take away", i, word)
			}
		}
		for _, word := range can {
			switch {
			case slices.Contains(protocol, word), slices.Contains(s.Truths.Without, word), slices.Contains(is, word):
			case word == "put": // every node has it in form; whether it stores is what the other cases show
			default:
				t.Errorf("Info.Can has %q, which node %d cannot", word, i)
			}
		}
	}
	if !slices.Contains(can, "put") && s.writes() {
		t.Error("nodes that take objects, and Info.Can has no \"put\"")
	}
}
