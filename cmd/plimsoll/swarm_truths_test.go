package main

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// needLinks skips where links cannot be emulated.
func needLinks(t *testing.T) {
	t.Helper()
	slow(t)
	bed, err := testbed.New(t.Context(), testbed.Options{Dir: t.TempDir()})
	must(t, err)
	mode := bed.Mode()
	must(t, bed.Close(t.Context()))
	if mode.Emulator == "none" {
		t.Skip("links are not emulated here: ", mode.Why)
	}
}

// swarmTrial is a trial with its cell and its leechers' fetches.
type swarmTrial struct {
	record.Trial
	cell    experiment.Cell
	fetches []record.Op
	events  []record.Event
}

// runSwarm executes an experiment of scenario disseminate to its end.
func runSwarm(t *testing.T, yaml string) (all []swarmTrial) {
	t.Helper()
	s := startRun(t, yaml)
	if code := s.end(); code != ui.CodeOK && code != ui.CodeInvalid && code != ui.CodeCorruption {
		t.Fatalf("plimsoll ended with status %d:\n%s", code, s.output())
	}
	r := readRun(t, s.dir)
	events, err := r.Events()
	must(t, err)
	for _, trial := range r.trials {
		st := swarmTrial{Trial: trial, cell: r.cell(trial)}
		if trial.State != record.Done {
			if trial.State == record.Failed {
				t.Errorf("%s failed: %s", st.name(), trial.Error)
			}
			continue
		}
		for _, e := range events {
			if e.Trial == trial.ID {
				st.events = append(st.events, e)
			}
		}
		for op, err := range r.Ops(trial.ID) {
			must(t, err)
			if op.Kind == record.OpFetch {
				st.fetches = append(st.fetches, op)
			}
		}
		if want := st.cell.Disseminate.Leechers(); len(st.fetches) != want {
			t.Errorf("%s: %d leechers, want %d", st.name(), len(st.fetches), want)
		}
		if len(trial.Invalid) > 0 {
			t.Logf("%s is invalid: %v %q", st.name(), trial.Invalid, trial.Notes)
		}
		all = append(all, st)
	}
	return all
}

func (s *swarmTrial) name() string {
	var factors []string
	for _, f := range s.cell.Factors {
		factors = append(factors, f.Value)
	}
	return fmt.Sprintf("block %d, %s", s.Block, strings.Join(factors, ", "))
}

// ok is how many leechers have the content.
func (s *swarmTrial) ok() (n int) {
	for _, f := range s.fetches {
		if f.Outcome == record.OK {
			n++
		}
	}
	return n
}

// wantBytes checks that what the leechers have has crossed their links, and the
// seeders' links.
func (s *swarmTrial) wantBytes(t *testing.T) {
	t.Helper()
	var seeders, received, sent float64
	nodes := s.cell.Disseminate.Nodes
	all := map[string][]float64{}
	for _, d := range s.Details {
		all[d.Kind] = append(all[d.Kind], d.Value)
	}
	for _, kind := range []string{record.DetailSeeder, record.DetailLinkReceived, record.DetailLinkSent} {
		if len(all[kind]) < nodes {
			t.Errorf("%s: %d details of kind %s for %d nodes", s.name(), len(all[kind]), kind, nodes)
			return
		}
	}
	for i := range nodes {
		if all[record.DetailSeeder][i] == 1 {
			seeders++
			sent += all[record.DetailLinkSent][i]
		} else {
			received += all[record.DetailLinkReceived][i]
		}
	}
	size := float64(s.cell.Data.Size)
	if want := size * float64(len(s.fetches)); received < want ||
		math.Abs(received/want-s.Metrics["overhead"]) > 0.001 {
		t.Errorf("%s: %g bytes came to the leechers, whose content is %g; overhead is said to be %v", s.name(),
			received, want, s.Metrics["overhead"])
	}
	if seeders != float64(s.cell.Disseminate.Seeders) || sent < size {
		t.Errorf("%s: %g seeders sent %g bytes of a content of %g", s.name(), seeders, sent, size)
	}
	// Headers are 4 % of full packets, and less where several are counted as one.
	if o := s.Metrics["overhead"]; o < 1.005 || o > 1.3 {
		t.Errorf("%s: %v bytes crossed the leechers' links for each byte of content", s.name(), o)
	}
}
