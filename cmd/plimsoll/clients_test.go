package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
)

const clientsExperiment = `
scenario: retrieve
systems: [static]
data: {objects: 2, size: 1MiB}
link: {delay: 2ms, rate: 40Mbit}
retrieve: {range: 64KiB, concurrency: 6, requests: 60}
repetitions: 3
`

// TestClients: a load that is divided among three generators does the operations that one
// does over the same link, as quickly, and says so in the record.
func TestClients(t *testing.T) {
	t.Parallel()
	type operation struct {
		object         uint32
		offset, length int64
		outcome        record.Outcome
	}
	type trial struct {
		ops   map[operation]int
		bytes int64
		p50   float64
	}
	of := func(clients, recorded string) (all []trial) {
		s := startRun(t, clientsExperiment, "--clients", clients)
		s.end()
		r := readRun(t, s.dir)
		if got := r.Meta()["clients"]; got != recorded {
			t.Errorf("--clients %s is recorded as %q", clients, got)
		}
		for _, tr := range r.trials {
			one := trial{map[operation]int{}, 0, tr.Metrics["duration_p50"]}
			for op, err := range r.Ops(tr.ID) {
				must(t, err)
				if op.Kind != record.OpWarmup {
					one.ops[operation{op.Object, op.Offset, op.Length, op.Outcome}]++
					one.bytes += op.Bytes
				}
			}
			all = append(all, one)
		}
		if len(all) != 3 {
			t.Fatalf("%d trials, want 3:\n%s", len(all), s.output())
		}
		return all
	}
	one, three := of("1", ""), of("3", "3")
	var a, b []float64
	for i := range one {
		if !maps.Equal(one[i].ops, three[i].ops) || one[i].bytes != three[i].bytes {
			t.Errorf("trial %d: %d operations and %d bytes, of one generator %d and %d", i, len(three[i].ops),
				three[i].bytes, len(one[i].ops), one[i].bytes)
		}
		a, b = append(a, one[i].p50), append(b, three[i].p50)
	}
	// Both are the link's: 6 × 64 KiB at 40 Mbit/s take 79 ms. A busy machine adds some.
	if slices.Min(b) > 1.15*slices.Max(a) || slices.Min(a) > 1.15*slices.Max(b) {
		t.Errorf("median durations %v, of one generator %v", b, a)
	}
}

// TestGeneratorKilled: the trial fails and names the generator, and the others are whole.
func TestGeneratorKilled(t *testing.T) {
	t.Parallel()
	s := startRun(t, faultExperiment, "--clients", "2")
	s.await("block 2 of 4")
	s.kill("node load")
	s.end()
	trials := s.trials()
	if len(trials) != 4 {
		t.Fatalf("%d trials, want 4:\n%s", len(trials), s.output())
	}
	failed := 0
	for _, tr := range trials {
		switch {
		case tr.State != record.Failed:
			if tr.Outcomes["ok"] == 0 {
				t.Errorf("nothing was ok: %v", tr.Outcomes)
			}
		case !strings.Contains(tr.Error, "ended by itself") || !strings.Contains(tr.Error, "killed"):
			t.Errorf("a trial failed: %s", tr.Error)
		default:
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d trials without a generator, want 1:\n%s", failed, s.output())
	}
}
