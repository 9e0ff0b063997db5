package experiment

import (
	"strings"
	"testing"
)

// A plan that cannot tell what it seems to ask says so.
func TestSyncWarnings(t *testing.T) {
	for _, c := range []struct {
		set  []string
		want string // empty: no warning
	}{
		{nil, ""},
		{[]string{"sync.vary.sync_interval=5s", "sync.storage=disk,ram"}, "sync.vary.sync_interval has one value"},
		{[]string{"sync.storage=disk,ram"}, ""},
		{[]string{"sync.storage=disk,ram", `where=["sync.storage == ram || sync.vary.sync_interval == 500ms"]`}, "no cell of ledger has the first value of all knobs"},
		{[]string{"sync.storage=disk,ram", `where=["sync.storage == disk || sync.vary.sync_interval == 500ms"]`}, ""},
	} {
		got := strings.Join(warningsOf(mustPlan(t, following, c.set...)), "; ")
		if !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%v: %q, want %q", c.set, got, c.want)
		}
	}
}
