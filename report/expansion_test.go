package report

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

func TestTheIdealOfACode(t *testing.T) {
	for _, x := range []struct {
		use  string
		with map[string]string
		want float64
	}{
		{"tahoe", map[string]string{"needed": "3", "total": "10"}, 10.0 / 3},
		{"siad", map[string]string{"data_pieces": "10", "parity_pieces": "20"}, 3},
		{"siad", map[string]string{"data_pieces": "0", "parity_pieces": "0"}, 0}, // the node's own
		{"renterd", map[string]string{"min_shards": "2", "total_shards": "6"}, 3},
		{"renterd", map[string]string{"min_shards": "0", "total_shards": "0"}, 0},
		{"tahoe", map[string]string{"needed": "4", "total": "3"}, 0},
		{"sftp", nil, 0},
	} {
		if got := (System{Use: x.use, with: x.with}).ideal(); got != x.want {
			t.Errorf("%s %v: %g, want %g", x.use, x.with, got, x.want)
		}
	}
}

// Objects that stay at the client are told as 0, and ways to store are not mixed.
func TestExpansionKeepsZerosAndOperationsApart(t *testing.T) {
	file := `
scenario: overhead
systems: [{use: tahoe, with: {needed: 2, total: 3}}]
link: {rate: 100Mbit, delay: [0s, 20ms]}
data: {size: [40B, 10kB, 1MB]}
overhead: {operation: [put, put-durable, put-dir], longest: 5m}
repetitions: 3
`
	r := costs{file: file, trial: func(c experiment.Cell, trial *record.Trial) {
		size := float64(c.Data.Size)
		x := map[string]float64{"put": 1.5, "put-durable": 3, "put-dir": 50}[c.Overhead.Operation]
		if size <= truthInline && c.Overhead.Operation == "put" {
			x, trial.Metrics["duration_p50"], trial.Metrics["wire_bytes"] = 0, 0.001, 0
		}
		trial.Metrics["expansion"], trial.Metrics["disk_per_byte"] = x, x
	}}.built(t)
	f := r.expansionFigure()
	if len(f.Panels) != 4 {
		t.Fatalf("%d panels", len(f.Panels))
	}
	seen := map[string]string{}
	for _, row := range f.Table.Rows {
		if row[0].Raw == "expansion" {
			seen[row[1].Raw+" "+row[3].Raw] = row[4].Text
			if row[7].Text != "1.50×" && row[7].Text != "1.50 ×" {
				t.Errorf("ideal %q", row[7].Text)
			}
		}
	}
	for at, want := range map[string]string{"put 40": "0 (stays at the client)", "put 10000": "1.50", "put-durable 1e+06": "3.00"} {
		if got := seen[at]; len(got) < len(want) || got[:len(want)] != want {
			t.Errorf("%s: %q, want %q; all %v", at, got, want, seen)
		}
	}
	if len(seen) != 6 {
		t.Errorf("%v", seen)
	}
}
