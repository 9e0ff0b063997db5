package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/presets"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed/agent"
)

// Hosts behind agents make the same record as hosts of this machine: of the same plan, the
// same trials with the same outcomes, the same processes observed, the same numbers of the
// same things, and links that are as right.
func TestHostsBehindAgents(t *testing.T) {
	needLinks(t)
	t.Parallel()
	const once = `
repetitions: 1
warmup: 0
limits: {others: none, machine: none}
skip: [machine]
`
	preset, err := presets.Get("quickstart")
	must(t, err)
	quickstart, _, _ := strings.Cut(string(preset.Source), "\nrepetitions:")
	quickstart = strings.NewReplacer("duration: 600ms", "requests: 12", "16MiB", "1MiB", "[1, 4, 16]", "4",
		"delay: 20ms", "delay: 5ms\n  tolerance: 50%").Replace(quickstart)
	for name, experiment := range map[string]string{
		"quickstart": quickstart + once, // with the same number of requests each time
		"disseminate": `
scenario: disseminate
systems: [bittorrent]
link: {delay: 2ms, rate: 50Mbit, tolerance: 50%}
data: {size: 2MiB}
disseminate: {nodes: 3, seeders: 1}
` + once,
	} {
		t.Run(name, func(t *testing.T) {
			direct := factsOfHosts(t, experiment)
			behind := factsOfHosts(t, experiment, agent.HostsVariable+"=agents")
			if diff := factsDiff(direct, behind); diff != "" {
				t.Errorf("behind agents (+) the record differs:\n%s", diff)
			}
		})
	}
}

// sampled are of the second in which a trial was looked at, which a short one may be without.
var sampled = map[string]bool{"box_cpu": true, "emulator_thread": true, "others_busy": true}

// factsOfHosts runs an experiment and lists what does not depend on how fast all was.
func factsOfHosts(t *testing.T, experiment string, env ...string) (facts []string) {
	t.Helper()
	s := startRun(t, experiment, env...)
	code := s.end()
	r, err := record.Open(s.dir)
	if err != nil {
		t.Fatalf("status %d, %v:\n%s", code, err, s.output())
	}
	defer r.Close()
	add := func(kind string, what ...any) {
		facts = append(facts, kind+" "+strings.TrimSpace(fmt.Sprintln(what...)))
	}
	add("plan", string(r.Plan()))
	trials, err := r.Trials()
	must(t, err)
	for _, trial := range trials {
		add("trial", trial.Cell, trial.State, trial.Outcomes, trial.Error)
		for metric, v := range trial.Metrics {
			if sampled[metric] {
				continue
			}
			add("metric", trial.Cell, metric, math.IsNaN(v))
		}
		for _, d := range trial.Details {
			if sampled[d.Name] {
				continue
			}
			add("detail", trial.Cell, d.Kind, d.Name, math.IsNaN(d.Value))
		}
		links, err := r.LinksOf(trial.ID)
		must(t, err)
		for _, l := range links {
			right := l.RTT >= l.WantRTT && l.Rate > l.WantRate/2
			add("link", l.From, l.To, l.Emulator, l.Congestion, l.WantRTT, l.WantRate, right)
		}
		for sample := range r.Samples(trial.ID) {
			known := []bool{!math.IsNaN(sample.RSS), !math.IsNaN(sample.NetRx), sample.PID > 0}
			add("process", trial.Cell, sample.Process, sample.Role, known)
		}
	}
	slices.Sort(facts)
	return slices.Compact(facts)
}
