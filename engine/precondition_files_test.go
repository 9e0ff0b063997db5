package engine

import (
	"syscall"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
)

// More connections than open files are refused before anything starts; the soft
// limit, which a run raises, does not count.
func TestMoreConnectionsThanFiles(t *testing.T) {
	var was syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was))
	soft := was
	soft.Cur = min(was.Max, 512)
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &soft))
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was)
	for connections, want := range map[int]int{1: 0, int(min(was.Max, 1<<30)) - spareFiles: 0,
		int(min(was.Max, 1<<30)) + 1: 1} {
		plan := &experiment.Plan{Cells: []experiment.Cell{{},
			{Retrieve: &experiment.Retrieve{Concurrency: connections}}}}
		got := checkFiles(t.Context(), Config{Plan: plan})
		if len(got) != want || want == 1 && !got[0].Blocking {
			t.Errorf("%d connections of %d: %+v", connections, was.Max, got)
		}
	}
}
