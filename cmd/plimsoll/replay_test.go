package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
)

// A replay to two servers that is killed goes on, unless its log was changed; each trial of
// each server asks for the same at the same times.
func TestReplayKilledAndResumed(t *testing.T) {
	slow(t)
	t.Parallel()
	var came atomic.Int64
	gone := func(r *http.Request) bool {
		is := strings.HasPrefix(r.URL.Path, "/gone")
		if is {
			came.Add(1)
		}
		return is
	}
	one, two := serve(t, make([]byte, 1000), gone), serve(t, make([]byte, 1000), gone)
	work := t.TempDir()
	var log strings.Builder
	for i := range 30 {
		path := []string{"/a", "/b?c=d", "/gone"}[i%3]
		fmt.Fprintf(&log, `{"ts":%d.%02d,"method":"GET","uri":%q,"status":206,"bytes":10,"range":"bytes=%d-"}`+"\n",
			100+i/20, i%20*5, path, i)
	}
	write := func(name, text string) string {
		path := filepath.Join(work, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	write("access.log", log.String())
	file := write("replay.yaml", fmt.Sprintf(`
scenario: retrieve
systems:
- {name: one, use: http, with: {urls: "%s/probe"}}
- {name: two, use: http, with: {urls: "%s/probe"}}
retrieve: {arrivals: {process: log, log: access.log}}
repetitions: 2
`, one, two))
	s := newSession(t)
	s.start(s.runOfFile(file)...)
	for deadline := time.Now().Add(time.Minute); came.Load() < 13; time.Sleep(time.Millisecond) { // the second trial
		if time.Now().After(deadline) {
			t.Fatalf("the servers got %d requests:\n%s", came.Load(), s.output())
		}
	}
	s.cmd.Process.Kill()
	<-s.done
	write("access.log", log.String()+"\n")
	if code, out := s.resume(); code != ui.CodePreconditions || !strings.Contains(out, "has changed since the plan") {
		t.Errorf("with another log: status %d\n%s", code, out)
	}
	write("access.log", log.String())
	// On a busy machine all trials may be invalid.
	if code, out := s.resume(); code != ui.CodeOK && code != ui.CodeInvalid {
		t.Fatalf("resume: status %d\n%s", code, out)
	}
	r := readRun(t, s.dir)
	done, first := map[string]int{}, []string(nil)
	for _, trial := range r.trials {
		if trial.State != record.Done {
			continue
		}
		done[trial.Cell]++
		if trial.Outcomes["ok"] != 20 || trial.Classes["status 404"] != 10 {
			t.Errorf("trial %d: outcomes %v, classes %v", trial.ID, trial.Outcomes, trial.Classes)
		}
		var ops []record.Op
		for op, err := range r.Ops(trial.ID) {
			must(t, err)
			ops = append(ops, op)
		}
		slices.SortFunc(ops, func(a, b record.Op) int { return int(a.Offset - b.Offset) })
		var sequence []string
		for _, op := range ops {
			sequence = append(sequence, fmt.Sprintf("%v %d+%d", time.Duration(op.Intended-ops[0].Intended), op.Offset,
				op.Length))
		}
		if first == nil {
			first = sequence
		}
		if !slices.Equal(sequence, first) || len(sequence) != 30 || sequence[29] != "1.45s 29+10" {
			t.Errorf("trial %d asks for %q, the first for %q", trial.ID, sequence, first)
		}
	}
	if len(done) != 2 || done["c001"] != 2 || done["c002"] != 2 {
		t.Errorf("trials done: %v", done)
	}
}
