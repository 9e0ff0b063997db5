package report

import (
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

const putFile = `
scenario: overhead
systems: [tahoe]
link: {rate: 100Mbit, delay: [0s, 20ms]}
data: {size: [100kB, 300kB, 1MB, 3MB, 10MB]}
overhead: {operation: put, longest: 5m}
repetitions: 6
`

const startRSS = 50e6

// daemon is one process that lives through trials, and gives nothing back.
type daemon struct {
	growth, fixed float64 // bytes for each file byte, and for any upload
	anew          bool    // it begins anew with every trial
	held, pid     float64
}

func (d *daemon) trial(c experiment.Cell, t *record.Trial) {
	if d.pid == 0 || d.anew {
		d.pid, d.held = d.pid+1, startRSS
	}
	rest := d.held
	d.held = max(d.held, startRSS+d.fixed+d.growth*float64(c.Data.Size))
	t.Details = nil
	for kind, v := range map[string]float64{record.DetailPID: d.pid, record.DetailRSSStart: startRSS, record.DetailPSSStart: startRSS, record.DetailRSSRest: rest, record.DetailRSSPeak: d.held} {
		t.Details = append(t.Details, record.Detail{Kind: kind, Name: c.System + "/client-1", Value: v})
	}
}

func memoryOf(t *testing.T, file string, d daemon) Memory {
	t.Helper()
	r := costs{file: file, trial: d.trial}.built(t)
	if len(r.Memory) != 1 {
		t.Fatalf("memory %+v", r.Memory)
	}
	return r.Memory[0]
}

// A daemon that keeps what it once took makes the peak of small objects that of
// large ones: that must not pass for memory that does not grow.
func TestMemoryThatIsNotGivenBack(t *testing.T) {
	withGets := strings.Replace(putFile, "operation: put", "operation: [put, get]", 1)
	for name, file := range map[string]string{"put": putFile, "put beside get": withGets} {
		if m := memoryOf(t, file, daemon{growth: 0.5, fixed: 1e6}); m.Grows == "no" || m.Grows == "" && m.Why == "" || m.RestRSS.Value != startRSS || m.Between.Value <= startRSS || m.AtMost < 0.5 {
			t.Errorf("%s: %+v", name, m)
		}
		// What it takes for any object is little beside the largest: that bounds the growth.
		if m := memoryOf(t, file, daemon{fixed: 2e5}); m.Grows != "no" || m.AtMost > 0.021 {
			t.Errorf("%s, flat: %+v", name, m)
		}
		if m := memoryOf(t, file, daemon{fixed: 9e6}); m.Grows == "yes" {
			t.Errorf("%s, flat with much for any object: %+v", name, m)
		}
	}
}

func TestMemoryOfProcessesThatBeginAnew(t *testing.T) {
	m := memoryOf(t, putFile, daemon{growth: 0.5, fixed: 9e6, anew: true})
	if m.Grows != "yes" || m.AtLeast || m.Growth.Value < 0.49 || m.Growth.Value > 0.51 {
		t.Errorf("growing: %+v", m)
	}
	m = memoryOf(t, putFile, daemon{fixed: 9e6, anew: true})
	if m.Grows != "no" || m.Growth.Hi > growthFloor || m.RestRSS.Value != startRSS {
		t.Errorf("flat: %+v", m)
	}
}

// One operation for each row: what a read or an update takes is not an upload's.
func TestMemoryIsOfUploadsAlone(t *testing.T) {
	file := strings.Replace(putFile, "operation: put", "operation: [put, get, put-durable]", 1)
	r := costs{file: file, trial: func(c experiment.Cell, trial *record.Trial) {
		peak := map[string]float64{"put": 60e6, "get": 900e6, "put-durable": 700e6}[c.Overhead.Operation]
		trial.Details = []record.Detail{{Kind: record.DetailRSSRest, Name: "tahoe/client-1", Value: startRSS}, {Kind: record.DetailRSSPeak, Name: "tahoe/client-1", Value: peak}}
	}}.built(t)
	if m := r.Memory[0]; m.Operation != "put" || m.One.Value != 60e6 || m.RestRSS.Value != startRSS {
		t.Errorf("%+v", m)
	}
}

// Of a run that was recorded without it, rest is what was there before the first load.
func TestRestWithoutARecordOfTheStart(t *testing.T) {
	n := 0.0
	r := costs{file: putFile, trial: func(_ experiment.Cell, trial *record.Trial) {
		n++
		trial.Details = []record.Detail{{Kind: record.DetailRSSRest, Name: "tahoe/client-1", Value: n * 1e6}}
		if n == 1 {
			trial.Invalid = []string{record.ReasonBoxBusy}
		}
	}}.built(t)
	if m := r.Memory[0]; m.RestRSS.Value != 1e6 || m.Between.Value < 20e6 || m.Operation != "" || m.Grows != "" {
		t.Errorf("%+v", m)
	}
}
