package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
)

// emptyPiece is the commitment of a piece of 8 MiB in which all is zero.
const emptyPiece = "baga6ea4seaqgl4u6lwmnerwdrm4iz7ag3mpwwaqtapc2fciabpooqmvjypweeha"

// A storage provider is measured as docs/retrieve.md gives it, alone and beside a
// system that is started here: link and data apply to the latter alone.
func TestAttachedProvider(t *testing.T) {
	slow(t)
	t.Parallel()
	provider := serve(t, make([]byte, 8<<20/128*127), func(r *http.Request) bool {
		return r.URL.Path != "/piece/"+emptyPiece
	})
	list := filepath.Join(t.TempDir(), "pieces.txt")
	must(t, os.WriteFile(list, []byte(emptyPiece+" 8000000\n"), 0o600))
	for systems, cells := range map[string]int{"boost": 1, "static,boost": 3} {
		t.Run(systems, func(t *testing.T) {
			s := newSession(t)
			s.start(s.runOfFile("boost-retrieval", "--set", "systems="+systems,
				"--set", "systems.boost.with.url="+provider, "--set", "systems.boost.with.list="+list,
				"--set", "link.rate=100Mbit,200Mbit", "--set", "data.size=4MiB", "--set", "retrieve.range=1MiB",
				"--set", "retrieve.concurrency=10", "--set", "retrieve.bytes=10MiB", "--set", "repetitions=1")...)
			s.endsMeasured()
			run := readRun(t, s.dir)
			plan, trials := run.plan, run.trials
			if len(plan.Cells) != cells {
				t.Errorf("%d cells, want %d", len(plan.Cells), cells)
			}
			system := map[string]string{}
			for _, c := range plan.Cells {
				attached := c.System == "boost"
				system[c.ID] = c.System
				if (c.Link.Rate == 0) != attached || (c.Data.Size == 0) != attached {
					t.Errorf("%s has a link of %v bit/s and data of %v bytes", c.System, c.Link.Rate, c.Data.Size)
				}
				for _, f := range c.Factors {
					if f.Path == "link.rate" && (f.Value == "own") != attached {
						t.Errorf("%s has the factor %+v", c.System, f)
					}
				}
			}
			if len(trials) != cells {
				t.Errorf("%d trials, want %d", len(trials), cells)
			}
			for _, tr := range trials {
				if tr.State != record.Done || tr.Outcomes["ok"] < 8 || len(tr.Outcomes) != 1 {
					t.Errorf("%s: %s, %v, %s", system[tr.Cell], tr.State, tr.Outcomes, tr.Error)
				}
			}
			links, err := run.Links()
			must(t, err)
			for _, l := range links {
				if l.From != "static" {
					t.Errorf("a link was measured from %s to %s", l.From, l.To)
				}
			}
			report, err := os.ReadFile(filepath.Join(s.dir, "summary.json"))
			if err != nil || !bytes.Contains(report, []byte("boost is attached")) &&
				!bytes.Contains(report, []byte("Boost is attached")) {
				t.Errorf("the report does not say what boost was given: %v", err)
			}
		})
	}
}
