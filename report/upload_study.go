package report

import (
	"maps"
	"slices"
	"strings"
)

// studies are the published figures of the load tests of Sia (2018), by the
// preset that follows them.
var studies = map[string]map[string]string{
	"sia-worst-case": {"files": "48,358", "file bytes": "48.3 kB", "absolute bytes": "10.8 TB", "absolute bytes per file": "213 MiB", "storage efficiency": "0.000000447 %",
		"load line of efficiency": "0.0000024 %", "redundancy, mean": "5.3×", "redundancy, highest": "11.3×", "contracts": "60", "spent": "3625 SC ($50.75)", "per TB·month": "$350 million",
		"duration": "24 d 20 h 48 min", "file bandwidth": "0.0225 B/s", "absolute bandwidth": "5.04 MB/s", "crashes": "0", "API latency at the start": "3 s", "API latency at the end": "over 5 minutes"},
	"sia-real-data": {"files": "2,626", "file bytes": "4.3 TiB", "storage efficiency": "28.3 %", "duration": "9.7 days", "file bandwidth": "5.73 MB/s"},
	"sia-best-case": {"file bytes": "1.5 TiB", "storage efficiency": "21.5 %", "duration": "14 days", "file bandwidth": "1.4 MB/s"},
}

// study2018 are the figures of the study that the experiment follows; nil: none.
func (r *Report) study2018() map[string]string {
	for _, where := range []string{r.EnvironmentOf("command"), r.EnvironmentOf("experiment"), r.Title, r.Description} {
		for _, name := range slices.Sorted(maps.Keys(studies)) {
			if strings.Contains(where, name) {
				return studies[name]
			}
		}
	}
	return nil
}
