package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"iter"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

const killedUpload = `
scenario: upload
systems:
  - {use: %s, mode: attach, with: {%s}}
data: {directory: %q}
upload: {concurrency: 5, poll: 500ms, backoff: 10ms, until: accepted}
allow: [write]
limits: {deadline: 1m}
`

// killsOr is how often a session is killed: so many times as PLIMSOLL_TEST_KILLS says,
// which `make bench` sets, or few.
func killsOr(few int) int {
	if n, err := strconv.Atoi(os.Getenv("PLIMSOLL_TEST_KILLS")); err == nil {
		return n
	}
	return few
}

// uploadKilled runs an upload experiment, kills it with SIGKILL so many times at
// random moments (after a random number of objects that the session has stored,
// at most `most`, and a random pause), resumes it each time, and lets the last
// session come to its end. Nothing is left of any session but the run directory.
// It returns the run and the jobs of its only trial.
func uploadKilled(t *testing.T, yaml string, kills, most int, env ...string) (savedRun, []record.Job) {
	t.Helper()
	s := newSession(t, env...)
	begin := s.runOf(yaml)
	args := begin
	for killed, ended := 0, false; !ended; {
		target, pause := accepted(s.dir)+rand.IntN(most), rand.N(30*time.Millisecond)
		if rand.IntN(8) == 0 { // now and then before it stores anything, too
			target, pause = 0, rand.N(time.Second)
		}
		s.start(args...)
		hangs := time.AfterFunc(3*time.Minute, func() { s.cmd.Process.Signal(syscall.SIGQUIT) })
		var err error
		for running := true; running; {
			select {
			case err = <-s.done:
				running, ended = false, true
			case <-time.After(10 * time.Millisecond):
				if killed < kills && accepted(s.dir) >= target {
					time.Sleep(pause)
					s.cmd.Process.Kill()
					err = <-s.done
					running, ended = false, s.cmd.ProcessState.Exited() // it was quicker
				}
			}
		}
		hangs.Stop()
		switch {
		case ended && err != nil:
			t.Fatalf("session %d ended with %v:\n%s", killed+1, err, s.output())
		case ended && killed < kills:
			t.Fatalf("all was done after %d kills, which leaves too little to kill:\n%s", killed, s.output())
		case !ended:
			killed++
		}
		if killed%10 == 1 || ended { // looking takes long
			s.nothingLeft()
		}
		args = s.afterKill(begin)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "nodes")); err == nil {
		t.Error("the deployment is still there")
	}
	recomputed(t, s.dir)
	r := readRun(t, s.dir)
	if len(r.trials) != 1 || r.trials[0].State != record.Done {
		t.Fatalf("%+v", r.trials)
	}
	var jobs []record.Job
	adopted := 0
	for j, err := range r.Jobs(r.trials[0].ID) {
		must(t, err)
		if j.Adopted {
			adopted++
		}
		jobs = append(jobs, j)
	}
	t.Logf("%d objects, %d of them found stored by a later session", len(jobs), adopted)
	return r, jobs
}

// accepted is how many objects the run has recorded as stored; 0 while it has no
// directory that can be read.
func accepted(dir string) int {
	r, err := record.Open(dir)
	if err != nil {
		return 0
	}
	defer r.Close()
	trials, err := r.Trials()
	if err != nil || len(trials) == 0 {
		return 0
	}
	n := 0
	for j := range r.Jobs(trials[0].ID) {
		if j.State == record.JobAccepted || j.State == record.JobDurable {
			n++
		}
	}
	return n
}

// tree makes files of mixed sizes, from one byte to most.
func tree(t *testing.T, n int, most int64) (dir string, files map[string][]byte) {
	t.Helper()
	dir, files = t.TempDir(), map[string][]byte{}
	rng := rand.New(rand.NewPCG(1, 2))
	var chacha = rand.NewChaCha8([32]byte{1})
	for i := range n {
		size := int64(1)
		if i%3 > 0 {
			size += rng.Int64N(most)
		}
		content := make([]byte, size)
		chacha.Read(content)
		name := fmt.Sprintf("%02d/file %04d.bin", i%17, i)
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, content, 0o644))
		files[name] = content
	}
	return dir, files
}

// filesOf are the jobs with the files that they stored: each file of the data set once.
func filesOf(t *testing.T, jobs []record.Job, files map[string][]byte) iter.Seq2[record.Job, []byte] {
	return func(yield func(record.Job, []byte) bool) {
		for _, j := range jobs {
			_, name, _ := strings.Cut(j.Name, "/")
			_, name, _ = strings.Cut(name, "/") // the run's mark and the cell's
			content, ok := files[name]
			delete(files, name)
			if !ok {
				t.Errorf("job %d: %q was never a file of the data set", j.Object, j.Name)
			} else if !yield(j, content) {
				return
			}
		}
		for name := range files {
			t.Errorf("%s was not stored", name)
		}
	}
}

// A load test on an S3 server survives all kills: in the end each file is on
// the server's disk once, byte for byte, and no key was stored twice.
func TestUploadKilledS3(t *testing.T) {
	slow(t)
	need(t, "versitygw")
	t.Parallel()
	bin := os.Getenv("PLIMSOLL_VERSITYGW")
	if bin == "" {
		bin, _ = exec.LookPath("versitygw")
	}
	host := systemtest.Hosts(t, 1)[0]
	port, err := host.Port(systemtest.Context(t), 0)
	must(t, err)
	address := system.JoinPort(host, port)
	data, logfile := t.TempDir(), filepath.Join(t.TempDir(), "access.log")
	must(t, os.Mkdir(filepath.Join(data, "load"), 0o755))
	server := exec.Command(bin, "--port", address, "--access", "test", "--secret", "secret-of-the-test", "--keep-alive",
		"--quiet", "--access-log", logfile, "posix", data)
	must(t, server.Start())
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })
	for range 200 {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			break
		}
		time.Sleep(50 * time.Millisecond)
	}

	kills := killsOr(4)
	dir, files := tree(t, 300*kills, 20_000) // a quick server stores some 150 before a kill
	r, jobs := uploadKilled(t, fmt.Sprintf(killedUpload, "s3",
		"endpoint: http://"+address+", bucket: load, access_key: PLIMSOLL_TEST_ACCESS, secret_key: "+
			"PLIMSOLL_TEST_SECRET", dir), kills, 40,
		"PLIMSOLL_TEST_ACCESS=test", "PLIMSOLL_TEST_SECRET=secret-of-the-test")
	holdsNot(t, r.Dir(), "secret-of-the-test")
	if len(jobs) != len(files) {
		t.Errorf("%d jobs for %d files", len(jobs), len(files))
	}
	keys := map[string]bool{}
	for j, content := range filesOf(t, jobs, files) {
		if got, err := os.ReadFile(filepath.Join(data, "load", j.Ref)); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: %d of %d bytes, %v", j.Name, len(got), len(content), err)
		}
		keys[j.Ref] = true
	}
	bucket := filepath.Join(data, "load")
	err = filepath.WalkDir(bucket, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch key, _ := filepath.Rel(bucket, path); {
		case e.IsDir() && strings.HasPrefix(e.Name(), "."):
			return fs.SkipDir // the server's own
		case !e.IsDir() && !keys[filepath.ToSlash(key)]:
			t.Errorf("the server has %s, which no job knows", key)
		}
		return nil
	})
	must(t, err)
	log, err := os.ReadFile(logfile)
	must(t, err)
	puts := map[string]int{}
	for _, m := range regexp.MustCompile(`s3_PutObject (\S+) \S+ 200 `).FindAllStringSubmatch(string(log), -1) {
		puts[m[1]]++
	}
	for key := range keys {
		if puts[key] != 1 {
			t.Errorf("%s was put %d times", key, puts[key])
		}
	}
}

const killedUploadStarted = `
scenario: upload
systems: [%s]
data: {directory: %q}
upload: {concurrency: 5, poll: 500ms, backoff: 100ms, until: accepted, verify: 100%%}
limits: {deadline: 1m}
`

// cameBack holds the run to its own verification: every object was fetched.
func cameBack(t *testing.T, r savedRun, objects int) {
	t.Helper()
	same := 0
	for op, err := range r.Ops(r.trials[0].ID) {
		must(t, err)
		if op.Kind == record.OpGet && op.Outcome == record.OK {
			same++
		}
	}
	if same != objects {
		t.Errorf("%d of %d objects came back byte for byte: %v", same, objects, r.trials[0].Outcomes)
	}
}

// The same on a Tahoe-LAFS grid of our own, which dies with each session and is
// brought up again on its directories. It does not tell what it stores: what was
// in doubt is put again, and the same bytes are the same object there.
func TestUploadKilledTahoe(t *testing.T) {
	slow(t)
	need(t, "tahoe")
	t.Parallel()
	kills := killsOr(2) // a grid takes seconds of CPU time to come up
	dir, files := tree(t, 100+12*kills, 3_000)
	r, jobs := uploadKilled(t, fmt.Sprintf(killedUploadStarted, "{use: tahoe, with: {nodes: 2, needed: 1, total: 2}}",
		dir), kills, 13)
	refs, reach := map[string]bool{}, 0
	for j := range filesOf(t, jobs, files) {
		if !refs[j.Ref] && !strings.HasPrefix(j.Ref, "URI:LIT:") {
			reach++
		}
		refs[j.Ref] = true
	}
	cameBack(t, r, len(jobs))
	first, held := -1.0, -1.0 // the first poll comes before the first object
	for p, err := range r.Polls(r.trials[0].ID) {
		must(t, err)
		for _, reading := range p.Readings {
			if reading.Name == "objects" {
				held = reading.Value
				if p.Seq == 0 {
					first = held
				}
			}
		}
	}
	if first < 0 || held-first != float64(reach) {
		t.Errorf("the storage nodes held %v objects at first and hold %v in the end, the run has stored %d that "+
			"reach them", first, held, reach)
	}
}
