package system_test

import (
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// TestFill: what an option takes is in its table, and whoever starts a system need not look again.
func TestFill(t *testing.T) {
	info := system.Info{Name: "some", Options: []system.Option{
		{Name: "piece", Type: "size", Default: "65536", Min: 16 << 10, Max: 1 << 20, Power: true},
		{Name: "slots", Type: "int", Min: 1},
		{Name: "wait", Type: "duration", Max: int64(time.Hour)},
		{Name: "kind", Type: "enum", Enum: []string{"a", "b"}, Default: "a"},
	}}
	full, err := info.Fill(system.Options{"slots": "3"})
	if err != nil || full["piece"] != "65536" || full["slots"] != "3" || full["wait"] != "" || full["kind"] != "a" {
		t.Errorf("%v, %v", full, err)
	}
	for want, opt := range map[string]system.Options{
		`"piece" is a power of two, from 16384 to 1048576, not "8192"`: {"piece": "8192"},
		`power of two, from 16384 to 1048576, not "2097152"`:           {"piece": "2097152"},
		`power of two, from 16384 to 1048576, not "65537"`:             {"piece": "65537"},
		`"slots" is at least 1, not "0"`:                               {"slots": "0"},
		`"slots" is at least 1, not "x"`:                               {"slots": "x"},
		`"wait" is from 0s to 1h0m0s, not "2h"`:                        {"wait": "2h"},
		`"wait" is from 0s to 1h0m0s, not "-1s"`:                       {"wait": "-1s"},
		`"kind" is one of a, b, not "c"`:                               {"kind": "c"},
		`unknown option "other"`:                                       {"other": "1"},
	} {
		if _, err := info.Fill(opt); err == nil || !strings.HasPrefix(err.Error(), "some: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", opt, err, want)
		}
	}
}
