package record

import (
	"bufio"
	"bytes"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"maps"
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

var helpers = map[string]func(args []string){
	"write":   writeUntilKilled,
	"create":  createUntilKilled,
	"journal": journalUntilKilled,
	"fill":    journalUntilFull,
	"weeks":   recordWeeks,
}

func TestMain(m *testing.M) {
	name := os.Getenv(helperEnv)
	if name == "" {
		if err := flag.Set("test.parallel", "4"); err != nil { // they wait for processes and disks
			panic(err)
		}
		os.Exit(m.Run())
	}
	helpers[name](os.Args[1:])
}

// helperProcess is what a helper has instead of a test: an error ends the process.
type helperProcess struct{}

func (helperProcess) Helper() {}

func (helperProcess) Fatal(why ...any) {
	fmt.Fprintln(os.Stderr, why...)
	os.Exit(1)
}

var process helperProcess

func helper(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), helperEnv+"="+name)
	return cmd
}

// runUntilKilled starts a helper, kills it -9 some time after its first line
// (or, when wait is false, after its start) and returns what it had said by then.
func runUntilKilled(t *testing.T, name string, wait bool, after time.Duration, args ...string) (lines []string) {
	t.Helper()
	cmd := helper(t, name, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	kill := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
	defer kill.Stop()
	in, first := bufio.NewReader(out), ""
	if wait {
		first, _ = in.ReadString('\n')
	}
	kill.Reset(after)
	rest, err := io.ReadAll(in)
	must(t, err)
	cmd.Wait()
	if errs.Len() > 0 {
		t.Fatalf("%s failed before it was killed: %s", name, errs.String())
	}
	for line := range strings.Lines(first + string(rest)) {
		if strings.HasSuffix(line, "\n") { // a line cut off was not said
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// kills is how often a process is killed: so many times as PLIMSOLL_TEST_KILLS says, which
// `make bench` sets, or few.
func kills(few int) int {
	if n, err := strconv.Atoi(os.Getenv("PLIMSOLL_TEST_KILLS")); err == nil {
		return n
	}
	return few
}

// trialOps are the operations that the trial of a block has; it can be told
// from the block alone.
func trialOps(block int) *synthetic { return newSynthetic(uint64(block), 20_000) }

func trialSize(block int) int {
	return rand.New(rand.NewPCG(uint64(block), 9)).IntN(20_000)
}

// writeUntilKilled records trials at full speed and says of each when it has
// ended. Now and then it closes the run and goes on.
func writeUntilKilled(args []string) {
	for {
		run := resume(process, args[0], nil)
		fmt.Println("resumed")
		next := 0
		for _, t := range trialsOf(process, run.Reader) {
			if t.State == Done {
				next = max(next, t.Block+1)
			}
		}
		for block := next; block < next+5; block++ {
			writeTrial(process, run, block)
			fmt.Println(block)
		}
		must(process, run.Close())
	}
}

func writeTrial(t failer, run *Run, block int) {
	t.Helper()
	w := begin(t, run, block)
	ops, n := trialOps(block), trialSize(block)
	for n > 0 {
		k := min(n, 1000)
		batch := ops.take(k)
		if n -= k; n%2 == 0 {
			must(t, w.Ops(batch))
		} else {
			must(t, w.Block(AppendBlock(nil, batch)))
		}
		must(t, w.Samples([]Sample{{Process: "load", CPU: float64(n)}}))
	}
	must(t, w.End(Trial{Metrics: map[string]float64{"block": float64(block)}}))
}

func TestKill9LosesNothingThatHadEnded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("short")
	}
	run := create(t)
	dir := run.Dir()
	must(t, run.Close())
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	ended := map[int]bool{}
	interrupted := 0
	before := map[int]bool{}
	reach := 200 * time.Millisecond
	if raceEnabled {
		reach *= 8 // SQLite is Go code too, and that much slower then
	}
	deadline := time.Now().Add(time.Minute)
	little := func() bool { return len(ended) < 10 || interrupted == 0 }
	for round := 0; round < kills(8) || little() && time.Now().Before(deadline); round++ {
		for _, line := range runUntilKilled(t, "write", round%4 != 0, time.Duration(rng.Int64N(int64(reach))), dir) {
			if block, err := strconv.Atoi(line); err == nil {
				ended[block] = true
			}
		}
		rd := open(t, dir)
		interrupted += verify(t, rd, ended, before)
		rd.Close()
	}
	if len(ended) == 0 || interrupted == 0 {
		t.Fatalf("%d trials ended, %d were interrupted: the test shows nothing", len(ended), interrupted)
	}
	t.Logf("%d trials ended, %d were interrupted", len(ended), interrupted)

	run = resume(t, dir, nil)
	defer run.Close()
	for _, tr := range trialsOf(t, run.Reader) {
		if tr.State == Running {
			t.Errorf("trial %d is still running", tr.ID)
		}
	}
	last := slices.Max(slices.Collect(maps.Keys(ended))) + 100
	writeTrial(t, run, last)
	ended[last] = true
	verify(t, run.Reader, ended, nil)
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
	done := map[int]bool{}
	for _, tr := range trialsOf(t, rd) {
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
			must(t, err)
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
		if samples, want := len(collect(t, rd.Samples(tr.ID))), (n+999)/1000; samples != want {
			t.Fatalf("trial %d has %d samples, want %d", tr.ID, samples, want)
		}
		inWindows := opsOf(collect(t, rd.Windows(tr.ID))...)
		summary, err := rd.Summary(tr.ID)
		must(t, err)
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

func createUntilKilled(args []string) {
	for i := 0; ; i++ {
		dir := filepath.Join(args[0], strconv.Itoa(i))
		run, err := Create(dir, []byte("plan"), map[string]string{"k": "v"}, testMetrics)
		must(process, err)
		fmt.Println(i)
		if i%2 == 0 {
			must(process, run.Close())
		}
	}
}

func TestKill9WhileCreating(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2))
	torn := 0
	for round := range kills(8) {
		parent := t.TempDir()
		said := runUntilKilled(t, "create", true, time.Duration(rng.IntN(40))*time.Millisecond, parent)
		created := map[string]bool{}
		for _, line := range said {
			created[line] = true
		}
		entries, err := os.ReadDir(parent)
		must(t, err)
		for _, e := range entries {
			run, err := Resume(filepath.Join(parent, e.Name()), []byte("plan"), nil)
			if err != nil {
				if created[e.Name()] {
					t.Fatalf("round %d: a run that was created cannot be resumed: %v", round, err)
				}
				if !strings.Contains(err.Error(), "not a run directory") {
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

// A writer that was killed in the middle of a change leaves a journal, which the next
// reader has to undo.
func TestAnUnfinishedChangeIsUndone(t *testing.T) {
	run, copied := create(t), filepath.Join(t.TempDir(), "run")
	dir := run.Dir()
	must(t, run.Close())
	db, err := sql.Open("sqlite", filepath.Join(dir, dbFile))
	must(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, change := range []string{"PRAGMA journal_mode = DELETE", "PRAGMA cache_size = 1", "BEGIN IMMEDIATE",
		"UPDATE meta SET value = 'changed' WHERE key = '" + keySchema + "'", "CREATE TABLE much AS SELECT " +
			"randomblob(1000000)"} {
		if _, err := db.Exec(change); err != nil {
			t.Fatalf("%s: %v", change, err)
		}
	}
	must(t, os.CopyFS(copied, os.DirFS(dir)))
	if journal, err := os.Stat(filepath.Join(copied, dbFile+"-journal")); err != nil || journal.Size() == 0 {
		t.Fatalf("no journal: %v", err)
	}
	open(t, copied)
}
