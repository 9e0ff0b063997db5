package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-project/plimsoll/presets"
	"github.com/plimsoll-project/plimsoll/testbed/agent"
)

// Hosts behind agents make the same record as hosts of this machine: of the same plan, the
// same trials with the same outcomes, the same processes observed, the same numbers of the
// same things, and links that are as right.
func TestHostsBehindAgents(t *testing.T) {
	needLinks(t)
	t.Parallel()
	preset, err := presets.Get("quickstart")
	must(t, err)
	quickstart, _, _ := strings.Cut(string(preset.Source), "\nrepetitions:")
	quickstart = strings.NewReplacer("duration: 1200ms", "requests: 12", "16MiB", "1MiB", "[1, 4, 16]", "4",
		"delay: 20ms", "delay: 5ms\n  tolerance: 50%").Replace(quickstart)
	for name, experiment := range map[string]string{
		"quickstart": quickstart, // with the same number of requests each time
		"disseminate": `
scenario: disseminate
systems: [bittorrent]
link: {delay: 2ms, rate: 50Mbit, tolerance: 50%}
data: {size: 2MiB}
disseminate: {nodes: 3, seeders: 1}
`,
	} {
		t.Run(name, func(t *testing.T) {
			direct := factsOfHosts(t, experiment)
			behind := factsOfHosts(t, experiment, agent.HostsVariable+"=agents")
			if diff := cmp.Diff(strings.Join(direct, ""), strings.Join(behind, "")); diff != "" {
				t.Errorf("behind agents (+) the record differs:\n%s", diff)
			}
		})
	}
}

// sampled are of the second in which a trial was looked at, which a short one may be without.
var sampled = map[string]bool{"box_cpu": true, "emulator_thread": true, "others_busy": true}

// factsOfHosts runs an experiment and lists what does not depend on how fast all was.
func factsOfHosts(t *testing.T, experiment string, env ...string) []string {
	t.Helper()
	s := newSession(t, env...)
	s.start(s.runOf(experiment, "--set", "repetitions=1")...)
	code := s.end()
	if _, err := os.Stat(filepath.Join(s.dir, "run.db")); err != nil {
		t.Fatalf("status %d, %v:\n%s", code, err, s.output())
	}
	facts := resultsOf(t, s.dir)
	add := func(what ...any) { facts = append(facts, fmt.Sprintln(what...)) }
	r := readRun(t, s.dir)
	for _, trial := range r.trials {
		for metric, v := range trial.Metrics {
			if !sampled[metric] {
				add("metric", trial.Cell, metric, math.IsNaN(v))
			}
		}
		for _, d := range trial.Details {
			if !sampled[d.Name] {
				add("detail", trial.Cell, d.Kind, d.Name, math.IsNaN(d.Value))
			}
		}
		for l, err := range r.LinksOf(trial.ID) {
			must(t, err)
			right := l.RTT >= l.WantRTT && l.Rate > l.WantRate/2
			add("link", l.From, l.To, l.Emulator, l.Congestion, l.WantRTT, l.WantRate, right)
		}
		for sample := range r.Samples(trial.ID) {
			known := []bool{!math.IsNaN(sample.RSS), sample.PID > 0}
			add("process", trial.Cell, sample.Process, sample.Role, known)
		}
	}
	slices.Sort(facts)
	return slices.Compact(facts)
}
