package main

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

const crashExperiment = `
scenario: retrieve
systems: [static, {use: nginx, with: {image: "IMAGE"}}]
data: {objects: 1, size: 1MiB}
link: {delay: 1ms, rate: 1Gbit}
retrieve: {range: 64KiB, concurrency: 4, duration: 150ms}
repetitions: 4
`

// TestKilledAtAnyMoment kills a run with SIGKILL at random moments, checks that
// nothing of it is left (processes, also those from a container image, scratch
// directories), resumes it, and in the end finds every trial of the plan done exactly once.
func TestKilledAtAnyMoment(t *testing.T) {
	slow(t)
	need(t, "nginx")
	t.Parallel()
	ref, cache := systemtest.PulledApart(t, nginxImage(t))
	s := newSession(t, testbed.CacheVariable+"="+cache)
	begin := s.runOf(strings.Replace(crashExperiment, "IMAGE", ref, 1), "--set", "warmup=1")
	args, finished := begin, false
	for kill := 0; kill < 3 && !finished; kill++ {
		s.start(args...)
		select {
		case err := <-s.done:
			finished = true
			if err != nil {
				t.Fatalf("session %d ended with %v:\n%s", kill, err, s.output())
			}
		case <-time.After(50*time.Millisecond + rand.N(3500*time.Millisecond)):
			s.cmd.Process.Kill()
			<-s.done
		}
		s.nothingLeft()
		args = s.afterKill(begin)
	}
	if !finished {
		s.start(args...)
		s.endsMeasured()
	}
	run := readRun(t, s.dir)
	seen := map[string]int{}
	for _, tr := range run.trials {
		if tr.State != record.Done {
			continue
		}
		key := tr.Cell + "/" + string(rune('0'+tr.Block+1))
		seen[key]++
		// On a starved machine a short trial may end before its first answers.
		if tr.Outcomes["ok"]+tr.Outcomes["in-flight"] == 0 || tr.Outcomes["wrong-bytes"] > 0 {
			t.Errorf("trial %s: outcomes %v", key, tr.Outcomes)
		}
	}
	if want := len(run.plan.Cells) * (run.plan.Warmup + run.plan.Blocks); len(seen) != want {
		t.Errorf("%d distinct trials are done, the plan has %d", len(seen), want)
	}
	for key, n := range seen {
		if n != 1 {
			t.Errorf("trial %s was done %d times", key, n)
		}
	}
}
