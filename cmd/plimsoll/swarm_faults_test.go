package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
)

const deadSeederExperiment = `
scenario: disseminate
systems: [bittorrent, boxo, fanout]
data: {size: 3MiB}
link: {rate: 20Mbit, delay: 1ms}
disseminate: {nodes: 3, faults: [none, [{crash: seeders, at: 20%}]]}
repetitions: 1
limits: {stall: 1500ms, deadline: 12s, start: 30s}
`

// The only seeder dies: nobody has everything, nobody waits for ever, and the
// trial after finds all nodes alive.
func TestSwarmLosesItsOnlySeeder(t *testing.T) {
	needLinks(t)
	t.Parallel()
	trials := runSwarm(t, deadSeederExperiment)
	if len(trials) != 6 {
		t.Errorf("%d trials were executed, want 6", len(trials))
	}
	after := 0 // trials that follow one with a dead seeder
	dead := map[string]bool{}
	for _, trial := range trials {
		t.Logf("%s: %.3g s, %v %v", trial.name(), trial.Seconds, trial.Outcomes, trial.Classes)
		sys := trial.cell.System
		if dead[sys] {
			after++
		}
		dead[sys] = trial.cell.Disseminate.Faults != nil
		if dead[sys] {
			trial.wantUnfinished(t)
		} else if trial.ok() != len(trial.fetches) {
			t.Errorf("%s: outcomes %v %v, events %v", trial.name(), trial.Outcomes, trial.Classes, trial.events)
		}
	}
	if after == 0 {
		t.Error("no trial came after one whose seeder died")
	}
}

// wantUnfinished checks a trial in which no leecher can get everything.
func (s *swarmTrial) wantUnfinished(t *testing.T) {
	t.Helper()
	for _, f := range s.fetches {
		if f.Outcome != record.Stalled && f.Outcome != record.Deadline || f.Bytes >= f.Length || f.Bytes == 0 {
			t.Errorf("%s: the leecher on node %d is %s %q with %d bytes", s.name(), f.Worker, f.Outcome, f.Class,
				f.Bytes)
		}
		// From the last that it got, limits.stall and a poll.
		if took := float64(f.LastByte-f.Intended) / 1e9; took > 13 {
			t.Errorf("%s: what becomes of the leecher on node %d was decided after %v s", s.name(), f.Worker, took)
		}
	}
	if _, has := s.Metrics["time_last"]; has {
		t.Errorf("%s: metrics %v", s.name(), s.Metrics)
	}
	if !slices.ContainsFunc(s.events, func(e record.Event) bool { return e.What == "crash begins" }) {
		t.Errorf("%s: no event of the crash: %v", s.name(), s.events)
	}
}

const churnExperiment = `
scenario: disseminate
systems: [%s]
data: {size: 4MiB}
link: {rate: 20Mbit, delay: 1ms, queue: 1MiB}
disseminate:
  nodes: 3
  faults:
    - none
    - {crash: leechers, count: 1, at: 20%%, for: 100ms}
    - {crash: leechers, count: 1, at: 20%%, for: 100ms, without_data: true}
    - {cut: leechers, count: 1, at: 30%%, for: 1s}
    - {rate: 5Mbit, at: 30%%}
repetitions: 1
limits: {stall: 15s, deadline: 1m, start: 30s}
`

// Leechers that are killed and come back, that are cut off for a while, and whose
// links become slower, all have the content in the end, and it takes them longer
// by what that costs.
func TestSwarmGoesOnAfterFaults(t *testing.T) {
	needLinks(t)
	t.Parallel()
	for _, sys := range []string{"bittorrent", "boxo", "deluge"} {
		t.Run(sys, func(t *testing.T) {
			if sys == "deluge" {
				need(t, sys)
			}
			t.Parallel()
			trials := runSwarm(t, fmt.Sprintf(churnExperiment, sys))
			at := func(faults string) (trial swarmTrial) {
				t.Helper()
				i := slices.IndexFunc(trials, func(trial swarmTrial) bool {
					is := trial.cell.Disseminate.Faults.String()
					return strings.HasPrefix(is, faults) &&
						strings.Contains(is, "without") == strings.Contains(faults, "without")
				})
				if i < 0 {
					t.Fatal("no trial was executed")
				}
				trial = trials[i]
				m := trial.Metrics
				t.Logf("%s: last %.3f s, median %.3f s, recovery %.3f s, recovered %.2f", trial.name(), m["time_last"],
					m["time_median"], m["recovery"], m["recovered"])
				if trial.ok() != len(trial.fetches) {
					t.Errorf("%s: outcomes %v %v", trial.name(), trial.Outcomes, trial.Classes)
				}
				return trial
			}
			calm := at("none")
			kept, lost, cut := at("crash 1 leecher at 20% for 100ms"),
				at("crash 1 leecher at 20% for 100ms without data"), at("cut")
			for _, trial := range []swarmTrial{kept, lost, cut} {
				m := trial.Metrics
				if m["recovered"] != 1 || !(m["recovery"] > 0) {
					t.Errorf("%s: recovered %v, after %v s", trial.name(), m["recovered"], m["recovery"])
				}
				ends := 0
				for _, e := range trial.events {
					if e.Kind == "fault" {
						ends++
					}
				}
				if ends != 2 {
					t.Errorf("%s: events %v", trial.name(), trial.events)
				}
			}
			// A leecher that has lost its data fetches it again.
			size := float64(calm.cell.Data.Size)
			a, b := kept.victim(t), lost.victim(t)
			t.Logf("%s: bytes received per byte of content: %.3f with its data, %.3f without", sys, a.received/size,
				b.received/size)
			// Bitswap asks several peers for a block: boxo's duplicates hide what was kept.
			again := (b.received - a.received) / size
			if sys != "boxo" && again < 0.05 || b.received < 1.1*size {
				t.Errorf("%s: a leecher that was killed received %v bytes with its data and %v without", sys,
					a.received, b.received)
			}
			// What the links allow at best: a busy machine only adds to these times. Up to a
			// tenth may be on its way when the fault begins.
			const full, quarter = 20e6 / 8, 5e6 / 8
			if least := 0.9 * (size/full + 1); cut.victim(t).took < least {
				t.Errorf("%s: %v s with a partition of 1 s, at least %v s are needed", sys, cut.victim(t).took, least)
			}
			if took, least := at("rate").Metrics["time_last"], 0.9*(0.3*size/full+0.6*size/quarter); took < least {
				t.Errorf("%s: %v s at a quarter of the rate from three tenths on, at least %v s are needed", sys, took,
					least)
			}
			// The line is by the link as measured, which may be off by its tolerance; 1 % is
			// what a bucket lets through at once.
			took, line := calm.Metrics["time_last"], calm.Metrics["line"]
			if took < 0.94*max(line, size/full) || !(line > 0) {
				t.Errorf("%s: %v s without faults, the load line is %v s", sys, took, line)
			}
			if sys != "boxo" {
				calm.wantBytes(t)
			}
		})
	}
}

// victim is the leecher that the trial's fault struck: the seconds that it took, and the
// bytes that it received over its link.
func (s *swarmTrial) victim(t *testing.T) (v struct{ took, received float64 }) {
	t.Helper()
	var received []float64
	for _, d := range s.Details {
		if d.Kind == record.DetailLinkReceived {
			received = append(received, d.Value)
		}
	}
	for _, e := range s.events {
		if e.Kind != "fault" {
			continue
		}
		for _, f := range s.fetches {
			if strings.HasSuffix(e.Detail, fmt.Sprintf("-%02d", f.Worker+1)) && int(f.Worker) < len(received) {
				v.took, v.received = float64(f.LastByte-f.Intended)/1e9, received[f.Worker]
				return v
			}
		}
	}
	t.Fatalf("%s: no leecher is named in %v, or its traffic is missing", s.name(), s.events)
	return v
}
