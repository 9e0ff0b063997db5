package engine

import (
	"context"
	"fmt"
	"syscall"

	"github.com/plimsoll-project/plimsoll/experiment"
)

// spareFiles are files that a process has open beside its connections: logs,
// the database, what it serves, observed processes.
const spareFiles = 256

// checkFiles refuses more connections than a process may have open files. The
// soft limit does not count: a run raises it to the hard one.
func checkFiles(_ context.Context, cfg Config) []Problem {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return nil
	}
	most := 0
	for _, c := range cfg.Plan.Cells {
		most = max(most, connections(&c))
	}
	if most == 0 || uint64(most+spareFiles) <= limit.Max {
		return nil
	}
	return []Problem{{
		What: fmt.Sprintf("%d connections at once, and at most %d open files per process", most, limit.Max),
		Hint: fmt.Sprintf("raise the hard limit to %d (ulimit -Hn, or LimitNOFILE= in the service), or use fewer",
			most+spareFiles),
		Blocking: true,
	}}
}

// connections is how many a cell has open at once.
func connections(c *experiment.Cell) int {
	switch {
	case c.Retrieve != nil:
		return c.Retrieve.Concurrency
	case c.Overhead != nil:
		return c.Overhead.Concurrency
	}
	return 0
}
