package record

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stages are the states that a job of the tests goes through.
var stages = []JobState{JobPutting, JobAccepted, JobDurable}

// stageJob is a job at one of them; it can be told from the object alone.
func stageJob(object int64, stage int) Job {
	j := syntheticJob(object)
	j.State = stages[stage]
	if stage < 2 {
		j.Durable = 0
	}
	if stage < 1 {
		j.Accepted, j.Ref = 0, ""
	}
	return j
}

// journalOps are few in a second, so that their windows do not wait in memory
// for the next flush.
func journalOps() *synthetic { return newSynthetic(5, 20) }

// journalUntilKilled goes on and on with one trial, in which objects are put two
// at a time by several workers, and says what was recorded of each.
func journalUntilKilled(args []string) {
	for {
		run := resume(process, args[0], keepAll)
		fmt.Println("resumed")
		journalSession(run)
	}
}

// storeJobs stores pairs of jobs, stage after stage, from several goroutines; each pair and stage that was
// stored is printed.
func storeJobs(w *TrialWriter, pair *atomic.Int64) *sync.WaitGroup {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 60 {
				n := pair.Add(1) - 1
				for stage := range stages {
					must(process, w.Jobs(stageJob(2*n, stage), stageJob(2*n+1, stage)))
					fmt.Println(n, stage)
				}
			}
		})
	}
	return &wg
}

func journalSession(run *Run) {
	var w *TrialWriter
	if trials := trialsOf(process, run.Reader); len(trials) == 0 {
		w = begin(process, run, 0)
	} else {
		var err error
		w, _, err = run.Continue(trials[0])
		must(process, err)
	}
	ops := journalOps()
	ops.take(int(w.Summary().Counts().Ops))
	polls := int64(0)
	for p, err := range run.Polls(w.ID()) {
		must(process, err)
		polls = p.Seq + 1
	}
	var pair atomic.Int64
	for j, err := range run.Jobs(w.ID()) {
		must(process, err)
		pair.Store(j.Object/2 + 1)
	}
	storing := storeJobs(w, &pair)
	for i := range 21 { // the last is a block whose windows wait for the next flush
		batch := ops.take(250)
		if i%2 == 1 {
			must(process, w.Ops(batch))
		} else {
			must(process, w.Block(AppendBlock(nil, batch)))
		}
		must(process, w.Poll(syntheticPoll(polls+int64(i), 6, 25)))
		if i%5 == 0 {
			must(process, run.Event(Event{Kind: "note", At: time.Now()}))
		}
	}
	storing.Wait()
	if pair.Load()%2 == 0 {
		must(process, w.End(Trial{State: Running, Metrics: map[string]float64{"throughput": 1}}))
	}
	must(process, run.Close())
}

// Killed at any moment, a trial that goes on loses no job that was recorded, has
// no half of a poll or of two jobs given at once, and goes on with windows and a
// summary that agree with its operations.
func TestKill9LosesNoJob(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("short")
	}
	run := create(t)
	dir := run.Dir()
	must(t, run.Close())
	reach := 300 * time.Millisecond
	if raceEnabled {
		reach *= 4
	}
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 3))
	said := map[int64]int{} // the stage that a pair had reached, plus one
	behind := 0
	began := time.Now()
	little := func() bool {
		return len(said) < 30 && time.Since(began) < time.Minute || behind == 0 && time.Since(began) < 10*time.Second
	}
	for round := 0; round < kills(8) || little(); round++ {
		for _, line := range runUntilKilled(t, "journal", round%4 != 0, time.Duration(rng.Int64N(int64(reach))), dir) {
			var n int64
			var stage int
			if k, _ := fmt.Sscan(line, &n, &stage); k == 2 {
				said[n] = max(said[n], stage+1)
			}
		}
		if checkJournal(t, dir, said) {
			behind++
		}
	}
	t.Logf("%d pairs of jobs; %d times the windows were behind the operations", len(said), behind)
	if len(said) < 30 {
		t.Fatalf("only %d pairs of jobs were recorded: the test shows nothing", len(said))
	}

	run = resume(t, dir, keepAll)
	defer run.Close()
	w, _, err := run.Continue(trialsOf(t, run.Reader)[0])
	must(t, err)
	must(t, w.End(Trial{}))
	ops := collect(t, run.Ops(w.ID()))
	if want := journalOps().take(len(ops)); !slices.Equal(ops, want) {
		t.Error("the operations are not those that were given")
	}
	n, want := windowsOf(t, ops)
	if got := collect(t, run.Windows(w.ID())); !slices.Equal(got, want) || n != int64(len(ops)) {
		t.Errorf("%d windows are not those of the %d operations", len(got), len(ops))
	}
	if c := w.Summary().Counts(); c.Ops != int64(len(ops)) {
		t.Errorf("the summary has %d operations of %d", c.Ops, len(ops))
	}
}

// checkJournal looks at what a killed process left, and tells whether windows
// lack operations that are stored.
func checkJournal(t *testing.T, dir string, said map[int64]int) (behind bool) {
	t.Helper()
	rd := open(t, dir)
	defer rd.Close()
	trials := trialsOf(t, rd)
	if len(trials) == 0 {
		if len(said) > 0 {
			t.Fatal("the trial is lost")
		}
		return false
	}
	id := trials[0].ID
	if len(trials) != 1 || trials[0].State != Running {
		t.Fatalf("%+v", trials)
	}
	reached := map[int64]int{}
	for j, err := range rd.Jobs(id) {
		must(t, err)
		stage := slices.Index(stages, j.State)
		if d := cmp.Diff(stageJob(j.Object, stage), j); d != "" {
			t.Fatalf("object %d (-want +got):\n%s", j.Object, d)
		}
		n := j.Object / 2
		if j.Object%2 == 0 {
			reached[n] = stage + 1
		} else if reached[n] != stage+1 {
			t.Fatalf("objects %d and %d were recorded at once and are apart: %d %d", j.Object-1, j.Object, reached[n],
				stage+1)
		}
	}
	for n, stage := range said {
		if reached[n] < stage {
			t.Fatalf("pair %d had reached stage %d, and %d is known", n, stage, reached[n])
		}
	}
	next := int64(0)
	for p, err := range rd.Polls(id) {
		must(t, err)
		if d := cmp.Diff(syntheticPoll(next, 6, 25), p); d != "" {
			t.Fatalf("poll %d (-want +got):\n%s", next, d)
		}
		next++
	}
	ops := len(collect(t, rd.Ops(id)))
	inWindows := opsOf(collect(t, rd.Windows(id))...)
	var inTotals int64
	must(t, rd.db.QueryRow(`SELECT coalesce(max(ops), 0) FROM summaries WHERE trial = ?`, id).Scan(&inTotals))
	if inWindows != inTotals || inWindows > int64(ops) {
		t.Fatalf("%d operations; the windows have %d, the totals %d", ops, inWindows, inTotals)
	}
	return inWindows < int64(ops)
}
