package upload

import (
	"github.com/plimsoll-project/plimsoll/scenario/internal/scenariotest"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
)

// Objects of which nothing reaches a server are told, because a cost of nothing is
// none of the system's.
func TestNothingReachedTheServers(t *testing.T) {
	for expansion, want := range map[string]bool{"0": true, "1": false} {
		scenariotest.Virtual(t, func(t *testing.T) {
			y := newUploadBench(t, system.Options{"a": "1s", "expansion": expansion}, uploadCell(3, 100)).must()
			told := slices.ContainsFunc(y.load.Notes, func(n string) bool { return strings.HasPrefix(n, "nothing reached the storage servers") })
			if told != want {
				t.Errorf("expansion %s, absolute bytes %g: notes %q", expansion, y.metrics["absolute_bytes"], y.load.Notes)
			}
		})
	}
}
