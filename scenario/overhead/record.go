package overhead

import (
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// tally adds up the operations of a trial.
type tally struct {
	count  int64     // operations timed
	failed int64     // those that were not ok
	moved  int64     // bytes of objects
	first  time.Time // start of the first
	last   time.Time // end of the last
	spent            // of all of them; wire NaN: not counted, or not theirs alone

	phases map[string][]float64 // seconds, by phase
	order  []string             // of the phases
}

// spent is what an operation took of us.
type spent struct {
	took    time.Duration // from call to return
	content time.Duration // in which we made or compared content
	cpu     float64       // seconds, of this process
	wire    float64       // bytes through the client's interface
}

// record takes one operation.
func (t *trial) record(op record.Op, c spent) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tally.add(op, c, t.sink.Epoch)
	t.sink.Progress(t.tally.count, t.tally.moved)
	return t.log.Add(op)
}

func (y *tally) add(op record.Op, c spent, epoch time.Time) {
	y.count++
	y.moved += op.Bytes
	y.took += c.took
	y.content += c.content
	y.cpu += c.cpu
	y.wire += c.wire
	if op.Outcome != record.OK {
		y.failed++
	}
	start, end := epoch.Add(time.Duration(op.Start)), epoch.Add(time.Duration(op.LastByte))
	if y.first.IsZero() || start.Before(y.first) {
		y.first = start
	}
	if end.After(y.last) {
		y.last = end
	}
}

func (y *tally) account(phases []system.Phase) {
	for _, phase := range phases {
		if y.phases[phase.Name] == nil {
			y.order = append(y.order, phase.Name)
		}
		y.phases[phase.Name] = append(y.phases[phase.Name], phase.Took.Seconds())
	}
}

// load is what the trial says of itself. cpu is this process's at its beginning.
func (t *trial) load(cpu float64) scenario.Load {
	y := &t.tally
	load := scenario.Load{Seconds: y.last.Sub(y.first).Seconds(), CPU: scenario.SelfCPU() - cpu}
	if load.Seconds > 0 {
		load.AchievedRate = float64(y.count) / load.Seconds
	}
	if !math.IsNaN(y.wire) {
		load.Details = append(load.Details, scenario.Fact(scenario.LoadWire, y.wire))
	}
	busy := y.took.Seconds()
	for _, name := range y.order {
		load.Details = append(load.Details, record.Detail{Kind: record.DetailPhase, Name: name,
			Value: stats.Median(y.phases[name])})
	}
	if t.unsettled.Load() {
		load.Details = append(load.Details, scenario.Fact(scenario.LoadGaveUp, 1))
		load.Notes = append(load.Notes, noteUnsettled)
	}
	if scenario.Saturated(y.cpu, busy, t.o.Concurrency, runtime.GOMAXPROCS(0)) {
		load.Invalid = append(load.Invalid, record.ReasonGeneratorSaturated)
		load.Notes = append(load.Notes, fmt.Sprintf("generator: it used %.2g s of CPU in %.2g s of operations", y.cpu,
			busy/float64(t.o.Concurrency)))
	}
	if mean := busy / float64(y.count); mean > t.o.Longest.Seconds() { // only the plan's estimate skips a cell
		load.Notes = append(load.Notes, fmt.Sprintf("an operation took %.3g s on average, longer than "+
			"overhead.longest (%s)",
			mean, t.o.Longest))
	}
	if share := y.content.Seconds() / busy; busy > 0 && share > contentShare {
		load.Notes = append(load.Notes, fmt.Sprintf("generator: to make and compare content took %.0f %% of the "+
			"operations' time", 100*share))
	}
	return load
}

// contentShare is the share of the operations' time from which on making and
// comparing their content is no small part of what was measured.
const contentShare = 0.05
