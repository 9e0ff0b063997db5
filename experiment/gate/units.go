package gate

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// unitsOf are the units in which a value of a metric may be given, with their
// factors to the metric's own. "" is a bare number, in the metric's own.
func unitsOf(unit string) map[string]float64 {
	big := map[string]float64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
	binary := map[string]float64{"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
	with := func(suffix string, tables ...map[string]float64) map[string]float64 {
		all := map[string]float64{}
		for _, t := range tables {
			for prefix, f := range t {
				all[prefix+suffix] = f
			}
		}
		return all
	}
	switch unit {
	case "s":
		return map[string]float64{"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600}
	case "ratio":
		return map[string]float64{"": 1, "%": 0.01}
	case "B", "B/s", "bit/s":
		return with(unit, big, binary)
	case "1/s":
		return with("/s", big)
	case "×":
		return map[string]float64{"": 1, "x": 1, "×": 1}
	case "1":
		return map[string]float64{"": 1}
	}
	return map[string]float64{"": 1, unit: 1}
}

func unitsHint(unit string) string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(unitsOf(unit))), func(s string) bool { return s == "" })
	if len(names) == 0 {
		names = []string{"none"}
	}
	return "units: " + strings.Join(names, ", ")
}

func unitWord(unit string) string {
	switch unit {
	case "ratio":
		return "a share"
	case "1":
		return "a count"
	}
	return unit
}

// mostOf is more than any value of a metric: of what is part of a whole, all of
// it. Other shares can be above 1 (that of a line was estimated), yet a limit ten
// times as high is a percentage without its sign.
func mostOf(m Metric) float64 {
	switch {
	case m.Unit != "ratio":
		return math.Inf(1)
	case slices.Contains([]string{"success_rate", "ok_rate", "recovered", "useful_share", "peer_share_max", "seeder_share"}, m.Key):
		return 1
	}
	return 10
}
