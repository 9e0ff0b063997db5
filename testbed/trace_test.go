package testbed

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// What a process used that came and went between two looks is not lost, and what
// another of its name used is not mixed with it.
func TestLastWordsOfProcesses(t *testing.T) {
	tb, h := plainHost(t)
	var samples []record.Sample
	traced := Trace(h)
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
