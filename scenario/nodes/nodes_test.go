package nodes

import (
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// What trials of scenarios cannot time exactly: a node that is lost before it came, and by
// how much a fault is late. Everything else is tested with the scenarios.
func TestLostBeforeItCame(t *testing.T) {
	p := &Progress{Released: 30 * time.Second}
	p.lost(10*time.Second, record.Error, ClassDied)
	if p.Started != p.Released || p.Ended != p.Released {
		t.Errorf("one that was to come at %v began at %v and ended at %v", p.Released, p.Started, p.Ended)
	}
}

func TestLateFault(t *testing.T) {
	trial := &Trial{Released: time.Minute, every: 50 * time.Millisecond}
	f := &Fault{Fault: experiment.Fault{At: experiment.When{Timed: true, After: experiment.Duration(10 * time.Second)}}}
	if trial.noteLate(f, 70*time.Second+500*time.Millisecond); len(trial.Notes) != 0 {
		t.Errorf("a fault half a second late: %q", trial.Notes)
	}
	if trial.noteLate(f, 75*time.Second); !strings.Contains(strings.Join(trial.Notes, ""), "15 s after the start, 5 s late") {
		t.Errorf("a fault 5 s late: %q", trial.Notes)
	}
}
