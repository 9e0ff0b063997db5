package testbed

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/plimsoll-project/plimsoll/record"
)

// plainHost is where tests of processes that need no network run.
func plainHost(t *testing.T) (*Testbed, *host) {
	t.Helper()
	tb := newTestbed(t, Options{Plain: true})
	return tb, addHost(t, tb, "a")
}

func fakeCommand(t *testing.T, name string, args ...string) Command {
	t.Helper()
	return Command{Name: name, Role: "system", Args: append([]string{self(t), "fake"}, args...)}
}

// alive reports whether pid runs (a zombie does not).
func alive(pid int) bool {
	s, is := scan()[pid]
	return is && !s.dead()
}

// eventually polls for what the kernel does in its own time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func logs(t *testing.T, p *process, text string) func() bool {
	return func() bool {
		b, err := os.ReadFile(p.LogPath())
		must(t, err)
		return strings.Contains(string(b), text)
	}
}

func TestStopEscalates(t *testing.T) {
	t.Parallel()
	_, h := plainHost(t)
	c := fakeCommand(t, "stubborn", "stubborn")
	c.StopTime = 200 * time.Millisecond
	p := start(t, h, c)
	eventually(t, "leader and child run", func() bool {
		return len(p.members()) == 2 && logs(t, p, "stubborn\nstubborn")()
	})
	pids := p.members()
	began := time.Now()
	must(t, p.Stop(t.Context()))
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("killed after %s, before it was asked in every way", took)
	}
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("pid %d is left", pid)
		}
	}
	if p.Err() != nil {
		t.Errorf("stopped by us, yet: %v", p.Err())
	}
}

func TestStopRemovesOrphans(t *testing.T) {
	t.Parallel()
	_, h := plainHost(t)
	p := start(t, h, fakeCommand(t, "orphan", "orphan"))
	<-p.Done()
	eventually(t, "a child is left", func() bool { return len(p.members()) == 1 })
	child := p.members()[0]
	if err := p.Stop(t.Context()); err != nil || alive(child) {
		t.Errorf("stop: %v, child alive %v", err, alive(child))
	}
}

func TestEnvironmentIsMinimal(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
	tb, h := plainHost(t)
	c := fakeCommand(t, "env", "env")
	c.Env = []string{"FOO=bar"}
	p := start(t, h, c)
	<-p.Done()
	b, _ := os.ReadFile(p.LogPath())
	got := string(b)
	if strings.Contains(got, "hunter2") || !strings.Contains(got, "FOO=bar") ||
		!strings.Contains(got, "HOME="+tb.opt.Dir) {
		t.Errorf("environment:\n%s", got)
	}
}

// Close while processes are being started leaves none, and start fails after.
func TestCloseWhileStarting(t *testing.T) {
	t.Parallel()
	for range 10 {
		tb, h := plainHost(t)
		pids := make(chan int, 1000)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for i := 0; ; i++ {
				c := fakeCommand(t, "sleep"+strconv.Itoa(i), "sleep")
				c.Ready = func(context.Context) error { return nil }
				p, err := h.Start(t.Context(), c)
				if err != nil {
					return
				}
				pids <- p.ID().PID
			}
		}()
		first := <-pids
		must(t, tb.Close(t.Context()))
		<-ended
		close(pids)
		for pid := first; pid != 0; pid = <-pids {
			if alive(pid) {
				t.Errorf("pid %d is left", pid)
			}
		}
	}
}

// Who has the number of a process that has ended is none of its family.
func TestFamilyOfAUsedNumber(t *testing.T) {
	const pid, ended, later = 7, 100, 200
	p := &process{pid: pid, birth: ended, seen: map[int]uint64{8: ended + 1}}
	all := map[int]stat{
		pid: {procfs.ProcStat{PID: pid, PGRP: pid, Session: pid, Starttime: later}},
		8:   {procfs.ProcStat{PID: 8, PPID: 1, Starttime: ended + 1}},
		9:   {procfs.ProcStat{PID: 9, PPID: pid, PGRP: pid, Session: pid, Starttime: later + 1}},
	}
	if got := p.family(all); len(got) != 1 || got[0].PID != 8 {
		t.Errorf("%+v", got)
	}
}

// What a process used that came and went between two looks is not lost, and what
// another of its name used is not mixed with it.
func TestLastWordsOfProcesses(t *testing.T) {
	tb, h := plainHost(t)
	var samples []record.Sample
	traced := TrackProcesses(h)
	stop := tb.Observe(time.Now(), time.Hour, func(s []record.Sample) {
		samples = append(samples, s...)
	})
	dir := t.TempDir()
	var pids []int
	for range 2 { // writes 8 MiB, then burns until it is stopped
		const script = `dd if=/dev/zero of="$0/file" bs=1M count=8 conv=fsync 2>/dev/null; touch "$0/written"
			while :; do :; done`
		p := start(t, h, Command{Name: "short", Args: []string{"/bin/sh", "-c", script, dir}})
		eventually(t, "it has written and burnt", func() bool {
			_, err := os.Stat(filepath.Join(dir, "written"))
			return err == nil && p.sample(scan()).CPU > 0.1
		})
		must(t, p.Stop(t.Context()))
		must(t, os.Remove(filepath.Join(dir, "written")))
		if peak := p.Peak(); !(peak > 100<<10) {
			t.Errorf("peak of one that has ended: %g", peak)
		}
		pids = append(pids, p.pid)
	}
	stop()
	on, err := Here().Filesystem(dir)
	must(t, err)
	for _, pid := range pids {
		i := slices.IndexFunc(samples, func(s record.Sample) bool { return s.PID == pid && s.Process == "short" })
		if i < 0 {
			t.Fatalf("no word of process %d", pid)
		}
		if s := samples[i]; !(s.CPU > 0.1) || s.RSS != 0 || s.WriteBytes < 8<<20 && !on.Memory && s.WriteBytes != 0 ||
			s.WriteBytes > 24<<20 {
			t.Errorf("its last word: %+v", s)
		}
	}
	var got []int
	for _, p := range traced() {
		got = append(got, p.ID().PID)
	}
	if !slices.Equal(got, pids) {
		t.Errorf("traced %v, want %v", got, pids)
	}
	p := start(t, h, Command{Name: "short", Args: []string{"/bin/sleep", "60"}})
	if peak := p.Peak(); !(peak > 0) {
		t.Errorf("peak of one that runs: %g", peak)
	}
	must(t, p.Stop(context.Background()))
}
