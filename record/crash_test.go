package record

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// helperEnv makes the test binary run one of the helpers instead of the tests.
const helperEnv = "RECORD_TEST_HELPER"

var helpers = map[string]func(args []string) error{
	"write":  writeUntilKilled,
	"create": createUntilKilled,
	"bulk":   recordInBulk,
}

func TestMain(m *testing.M) {
	name := os.Getenv(helperEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := helpers[name](os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func helper(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), helperEnv+"="+name)
	return cmd
}

// runUntilKilled starts a helper, kills it -9 after a while and returns what
// it had said by then.
func runUntilKilled(t *testing.T, name string, after time.Duration, args ...string) []string {
	t.Helper()
	cmd := helper(t, name, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatalf("%v; it said: %s", err, errs.String())
	}
	cmd.Wait()
	if errs.Len() > 0 {
		t.Fatalf("%s failed before it was killed: %s", name, errs.String())
	}
	// The last line may be cut off: then nothing was said.
	said := out.String()
	return strings.Split(said[:strings.LastIndexByte(said, '\n')+1], "\n")
}

// trialOps are the operations that the trial of a block has; it can be told
// from the block alone.
func trialOps(block int) *synthetic { return newSynthetic(uint64(block), 20_000) }

func trialSize(block int) int {
	return rand.New(rand.NewPCG(uint64(block), 9)).IntN(20_000)
}

// writeUntilKilled records trials at full speed and says of each when it has
// ended. Now and then it closes the run and goes on.
func writeUntilKilled(args []string) error {
	dir := args[0]
	for {
		run, err := Resume(dir, nil)
		if err != nil {
			return err
		}
		trials, err := run.Trials()
		if err != nil {
			return err
		}
		next := 0
		for _, t := range trials {
			if t.State == Done {
				next = max(next, t.Block+1)
			}
		}
		for block := next; block < next+5; block++ {
			if err := writeTrial(run, block); err != nil {
				return err
			}
		}
		if err := run.Close(); err != nil {
			return err
		}
	}
}

func writeTrial(run *Run, block int) error {
	w, err := run.Begin("c001", block, false, time.Now())
	if err != nil {
		return err
	}
	ops, n := trialOps(block), trialSize(block)
	for n > 0 {
		k := min(n, 1000)
		batch := ops.take(k)
		if n -= k; n%2 == 0 {
			err = w.Ops(batch)
		} else {
			err = w.Block(AppendBlock(nil, batch))
		}
		if err != nil {
			return err
		}
		if err := w.Samples([]Sample{{Process: "load", CPU: float64(n)}}); err != nil {
			return err
		}
	}
	if err := w.End(Trial{Metrics: map[string]float64{"block": float64(block)}}); err != nil {
		return err
	}
	_, err = fmt.Println(block)
	return err
}

func TestKill9LosesNothingThatHadEnded(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	dir := filepath.Join(t.TempDir(), "run")
	plan := []byte(`{"plan":1}`)
	run, err := Create(dir, plan, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Close(); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	ended := map[int]bool{}
	interrupted := 0
	before := map[int]bool{}
	for range 25 {
		for _, line := range runUntilKilled(t, "write", time.Duration(30+rng.IntN(250))*time.Millisecond, dir) {
			if block, err := strconv.Atoi(line); err == nil {
				ended[block] = true
			}
		}
		rd, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		interrupted += verify(t, rd, ended, before)
		rd.Close()
	}
	if len(ended) == 0 || interrupted == 0 {
		t.Fatalf("%d trials ended, %d were interrupted: the test shows nothing", len(ended), interrupted)
	}
	t.Logf("%d trials ended, %d were interrupted", len(ended), interrupted)

	run, err = Resume(dir, plan)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	trials, err := run.Trials()
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range trials {
		if tr.State == Running {
			t.Errorf("trial %d is still running", tr.ID)
		}
	}
	last := slices.Max(mapsKeys(ended)) + 100
	if err := writeTrial(run, last); err != nil {
		t.Fatal(err)
	}
	ended[last] = true
	verify(t, run.Reader, ended, nil)
}

func mapsKeys(m map[int]bool) (keys []int) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

// verify checks the database and every trial that is done, among them all that
// had ended, and gives the number of those that were running. It adds those it
// checked to before, and does not check them again.
func verify(t *testing.T, rd *Reader, ended, before map[int]bool) (running int) {
	t.Helper()
	var integrity string
	if err := rd.db.QueryRow(`PRAGMA integrity_check`).Scan(&integrity); err != nil || integrity != "ok" {
		t.Fatalf("integrity: %v %v", integrity, err)
	}
	trials, err := rd.Trials()
	if err != nil {
		t.Fatal(err)
	}
	done := map[int]bool{}
	for _, tr := range trials {
		if tr.State != Done {
			running++
			continue
		}
		if done[tr.Block] {
			t.Fatalf("block %d was executed twice", tr.Block)
		}
		done[tr.Block] = true
		if before[tr.Block] {
			continue
		}
		if before != nil {
			before[tr.Block] = true
		}
		want, n := trialOps(tr.Block), 0
		for op, err := range rd.Ops(tr.ID) {
			if err != nil {
				t.Fatal(err)
			}
			if expected := want.next(); op != expected {
				t.Fatalf("trial %d, operation %d: %+v, want %+v", tr.ID, n, op, expected)
			}
			n++
		}
		if n != trialSize(tr.Block) {
			t.Fatalf("trial %d has %d operations, want %d", tr.ID, n, trialSize(tr.Block))
		}
		if tr.Metrics["block"] != float64(tr.Block) {
			t.Fatalf("trial %d: metrics %v", tr.ID, tr.Metrics)
		}
		var samples, wantSamples int
		for _, err := range rd.Samples(tr.ID) {
			if err != nil {
				t.Fatal(err)
			}
			samples++
		}
		if wantSamples = (n + 999) / 1000; samples != wantSamples {
			t.Fatalf("trial %d has %d samples, want %d", tr.ID, samples, wantSamples)
		}
		windows, err := rd.Windows(tr.ID)
		if err != nil {
			t.Fatal(err)
		}
		var inWindows int64
		for _, w := range windows {
			inWindows += w.Ops()
		}
		summary, err := rd.Summary(tr.ID)
		if err != nil {
			t.Fatal(err)
		}
		if c := summary.Counts(); c.Ops != int64(n) || inWindows != int64(n) {
			t.Fatalf("trial %d has %d operations; in its summary are %d, in its windows %d", tr.ID, n, c.Ops, inWindows)
		}
	}
	for block := range ended {
		if !done[block] {
			t.Fatalf("block %d had ended and is lost", block)
		}
	}
	return running
}

func createUntilKilled(args []string) error {
	for i := 0; ; i++ {
		dir := filepath.Join(args[0], strconv.Itoa(i))
		run, err := Create(dir, []byte("plan"), map[string]string{"k": "v"}, testMetrics)
		if err != nil {
			return err
		}
		if _, err := fmt.Println(i); err != nil {
			return err
		}
		if i%2 == 0 {
			if err := run.Close(); err != nil {
				return err
			}
		}
	}
}

func TestKill9WhileCreating(t *testing.T) {
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2))
	torn := 0
	for round := range 20 {
		parent := t.TempDir()
		said := runUntilKilled(t, "create", time.Duration(20+rng.IntN(60))*time.Millisecond, parent)
		created := map[string]bool{}
		for _, line := range said {
			created[line] = true
		}
		entries, err := os.ReadDir(parent)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			run, err := Resume(filepath.Join(parent, e.Name()), []byte("plan"))
			if err != nil {
				if created[e.Name()] {
					t.Fatalf("round %d: a run that was created cannot be resumed: %v", round, err)
				}
				if !strings.Contains(err.Error(), "cut off while being created") && !strings.Contains(err.Error(), "not a run directory") {
					t.Fatalf("round %d: %v", round, err)
				}
				torn++
				continue
			}
			if run.Reader.Meta()["k"] != "v" || len(run.Metrics()) != len(testMetrics) {
				t.Fatalf("round %d: incomplete: %v %v", round, run.Reader.Meta(), run.Metrics())
			}
			run.Close()
		}
	}
	t.Logf("%d were cut off while being created", torn)
}
