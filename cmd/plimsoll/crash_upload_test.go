package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system/all"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

const crashUpload = `
scenario: upload
systems: [%s]
data: {objects: %d, size: 3kB}
upload: {concurrency: 4, poll: 500ms, verify: 100%%, retries: 100, backoff: 100ms}
repetitions: 1
warmup: 0
limits: {others: 100%%}
skip: [machine]
`

// TestLoadTestKilledAtAnyMoment kills a load test with SIGKILL at random moments
// and goes on with it: in the end every object is stored once and verified byte
// for byte, and nothing of it is left. PLIMSOLL_KILLS is how many times.
func TestLoadTestKilledAtAnyMoment(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	kills := 4
	if text := os.Getenv("PLIMSOLL_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatalf("PLIMSOLL_KILLS: %v", err)
		}
	}
	for _, c := range []struct {
		system, use, daemon string
		objects             int           // so many that they are not stored before the last kill
		longest             time.Duration // from the start of a session to its kill, or from its first poll
	}{
		{"s3", "s3", "versitygw", 1000 * kills, 3 * time.Second},
		{"tahoe", "{use: tahoe, with: {nodes: 2, needed: 1, total: 2, happy: 2}}", "tahoe", 30 * kills, 6 * time.Second},
	} {
		t.Run(c.system, func(t *testing.T) {
			s, ok := all.ByName(c.system)
			if !ok {
				t.Fatal("there is no such system")
			}
			systemtest.Need(t, c.daemon, s.Check(t.Context(), nil))
			killUpload(t, fmt.Sprintf(crashUpload, c.use, c.objects), c.objects, kills, c.longest)
		})
	}
}

func killUpload(t *testing.T, experiment string, objects, kills int, longest time.Duration) {
	tmp, dir := t.TempDir(), filepath.Join(t.TempDir(), "run")
	file := filepath.Join(t.TempDir(), "upload.yaml")
	if err := os.WriteFile(file, []byte(experiment), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", file, "--out", dir}
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2))
	for kill := 0; ; kill++ {
		out := &session{t: t} // keeps what is said
		c := exec.Command(os.Args[0], args...)
		c.Env = append(os.Environ(), "PLIMSOLL_TEST_MAIN=1", "TMPDIR="+tmp)
		c.Stdout, c.Stderr = out, out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- c.Wait() }()
		killed := make(chan bool)
		if kill < kills {
			pause := 50*time.Millisecond + time.Duration(rng.Int64N(int64(longest)))
			go func() {
				// Every other time while it is stored, however long the start takes.
				for kill%2 == 1 && !strings.Contains(out.output(), "objects accepted") && t.Context().Err() == nil {
					time.Sleep(10 * time.Millisecond)
				}
				time.Sleep(pause)
				close(killed)
			}()
		}
		watchdog := time.AfterFunc(10*time.Minute, func() { c.Process.Signal(syscall.SIGQUIT) })
		select {
		case err := <-done:
			watchdog.Stop()
			if err != nil {
				t.Fatalf("session %d ended with %v:\n%s", kill, err, out.output())
			}
			t.Logf("done in session %d", kill)
			nothingLeft(t, tmp, dir)
			storedOnce(t, dir, objects)
			return
		case <-killed:
			c.Process.Kill()
			<-done
			watchdog.Stop()
		}
		nothingLeft(t, tmp, dir)
		if _, err := os.Stat(filepath.Join(dir, "plan.json")); err == nil {
			args = []string{"resume", dir}
		} else {
			os.RemoveAll(dir) // killed before the run directory was one
		}
	}
}

// storedOnce looks into the record of a run that is complete.
func storedOnce(t *testing.T, dir string, objects int) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "nodes")); err == nil {
		t.Error("the deployment is still there")
	}
	r, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	trials, err := r.Trials()
	if err != nil {
		t.Fatal(err)
	}
	if len(trials) != 1 || trials[0].State != record.Done {
		t.Fatalf("got %+v", trials)
	}
	m := trials[0].Metrics
	if n := float64(objects); m["accepted"] != n || m["verified"] != n || m["verify_failed"] != 0 || m["failed"] != 0 || m["missing"] != 0 {
		t.Errorf("of %d objects %v are accepted, %v verified, %v not; %v failed, %v missing", objects, m["accepted"], m["verified"], m["verify_failed"], m["failed"], m["missing"])
	}
	n := 0
	for job, err := range r.Jobs(trials[0].ID) {
		if err != nil {
			t.Fatal(err)
		}
		if job.Object != int64(n) || job.State != record.JobAccepted && job.State != record.JobDurable {
			t.Errorf("job %d: %+v", n, job)
		}
		n++
	}
	if n != objects {
		t.Errorf("%d jobs for %d objects", n, objects)
	}
	puts := map[uint32]int{}
	for op, err := range r.Ops(trials[0].ID) {
		if err != nil {
			t.Fatal(err)
		}
		if op.Kind == record.OpPut && op.Outcome == record.OK {
			puts[op.Object]++
		}
	}
	for object, n := range puts {
		if n > 1 {
			t.Errorf("object %d was put %d times", object, n)
		}
	}
}
