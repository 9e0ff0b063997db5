package engine

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario/upload"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
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
		got := checkFiles(t.Context(), Config{Plan: plan}, nodePlace{})
		if len(got) != want || want == 1 && !got[0].Blocking {
			t.Errorf("%d connections of %d: %+v", connections, was.Max, got)
		}
	}
}

// More data than any disk has is found before anything is stored: by doctor,
// which knows no run directory, as by run, and for systems that keep their data in
// that directory as for those that do not.
func TestDiskSpace(t *testing.T) {
	for _, c := range []struct {
		name    string
		sys     system.System
		objects int
		dir     string
		full    bool
	}{
		{"little", mem.System{}, 10, "", false},
		{"much", mem.System{}, 4096, "", true},
		{"little that is kept", keeper{}, 10, "", false},
		{"much that is kept", keeper{}, 4096, "", true},
		{"the same for a run", keeper{}, 4096, t.TempDir(), true},
	} {
		size := int64(1)
		if c.full {
			size = 1 << 50
		}
		plan := mustPlan(t, fmt.Sprintf(lossyExperiment, "0", "accepted"))
		for i := range plan.Cells {
			plan.Cells[i].Data.Objects, plan.Cells[i].Data.Size = c.objects, experiment.Bytes(size)
		}
		problems := checkDisk(t.Context(), Config{Plan: plan, Scenario: upload.Scenario{},
			Systems: []system.System{c.sys}, Dir: c.dir}, nodePlace{})
		if got := len(Blocking(problems)) > 0; got != c.full || c.full &&
			!strings.Contains(problems[0].What, "4612 PB") {
			t.Errorf("%s: %+v", c.name, problems)
		}
	}
}

// keeper is a system whose data can be brought up again.
type keeper struct{ mem.System }

func (keeper) Info() system.Info {
	i := mem.System{}.Info()
	i.Kept = "data"
	return i
}
