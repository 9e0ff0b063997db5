package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed/agent"
)

// Hosts behind agents make the same record as hosts of this machine: of the same plan, the
// same trials with the same outcomes, the same processes observed, the same numbers of the
// same things, and links that are as right.
func TestHostsBehindAgents(t *testing.T) {
	needLinks(t)
	for name, experiment := range map[string]string{
		"retrieve": `
scenario: retrieve
systems: [static, boxo]
link: {delay: 5ms, rate: 100Mbit, tolerance: 50%}
data: {objects: 2, size: 1MiB}
retrieve: {concurrency: 2, requests: 12}
`,
		"disseminate": `
scenario: disseminate
systems: [bittorrent]
link: {delay: 2ms, rate: 50Mbit, tolerance: 50%}
data: {size: 2MiB}
disseminate: {nodes: 3, seeders: 1}
`,
	} {
		experiment += `
repetitions: 1
warmup: 0
limits: {others: none, machine: none}
skip: [machine]
`
		t.Run(name, func(t *testing.T) {
			direct := factsOfHosts(t, experiment)
			behind := factsOfHosts(t, experiment, agent.HostsVariable+"=agents")
			if diff := factsDiff(direct, behind); diff != "" {
				t.Errorf("behind agents (+) the record differs:\n%s", diff)
			}
		})
	}
}

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
	check(t, err)
	for _, trial := range trials {
		add("trial", trial.Cell, trial.State, trial.Outcomes, trial.Error)
		for metric, v := range trial.Metrics {
			add("metric", trial.Cell, metric, math.IsNaN(v))
		}
		for _, d := range trial.Details {
			add("detail", trial.Cell, d.Kind, d.Name, math.IsNaN(d.Value))
		}
		links, err := r.LinksOf(trial.ID)
		check(t, err)
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
