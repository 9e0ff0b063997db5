package agent

import (
	"context"
	"io"
	"math"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// facts are what an agent says of its machine at once.
type facts struct {
	CPUs        int
	Memory      float64
	IOPressure  float64
	Environment map[string]string
}

// machineCall is a question about the machine; each uses what it needs.
type machineCall struct {
	Name    string
	Size    int64
	Options testbed.Options
}

// machineCalls are the questions about the machine and its processes, on the agent's side.
func (s *server) machineCalls(mux map[string]handler) {
	m := s.host.Machine()
	mux["/facts"] = call(func(context.Context, none) (f facts, err error) {
		f.Memory, err = m.AvailableMemory()
		f.CPUs, f.IOPressure, f.Environment = m.CPUs(), m.IOPressure(), m.Environment()
		return f, err
	})
	mux["/filesystem"] = call(func(_ context.Context, q machineCall) (testbed.Filesystem, error) {
		return m.Filesystem(q.Name)
	})
	mux["/problems"] = call(func(_ context.Context, q machineCall) ([]testbed.Problem, error) {
		return m.Problems(q.Options), nil
	})
	mux["/poll"] = call(func(context.Context, none) ([]record.Sample, error) { return s.bed.Poll(time.Now()), nil })
	mux["/ramdisk"] = stream(func(_ context.Context, x *exchange, q machineCall) {
		d, err := m.RAMDisk(q.Name, q.Size)
		if err != nil {
			_ = x.answer(ramDisk{}, err)
			return
		}
		if x.answer(ramDisk{d.Path, d.On}, nil) == nil {
			_, _ = io.Copy(io.Discard, x.in) // until the caller removes it, or is gone
		}
		_ = x.answer(none{}, d.Remove())
	})
}

type ramDisk struct{ Path, On string }

// machine is that of an agent's host.
type machine struct{ h *Host }

func (m machine) facts() (facts, error) {
	return ask[facts](context.Background(), &m.h.client, "/facts", none{})
}

// Name implements testbed.Machine.
func (m machine) Name() string { return m.h.on }

// CPUs implements testbed.Machine.
func (m machine) CPUs() int {
	if m.h.cpus.Load() == 0 {
		f, _ := m.facts()
		m.h.cpus.Store(int64(f.CPUs))
	}
	return int(m.h.cpus.Load())
}

// AvailableMemory implements testbed.Machine.
func (m machine) AvailableMemory() (float64, error) {
	f, err := m.facts()
	return f.Memory, err
}

// Filesystem implements testbed.Machine.
func (m machine) Filesystem(dir string) (testbed.Filesystem, error) {
	return ask[testbed.Filesystem](context.Background(), &m.h.client, "/filesystem", machineCall{Name: dir})
}

// RAMDisk implements testbed.Machine. It ends with the connection, too.
func (m machine) RAMDisk(name string, size int64) (testbed.RAMDisk, error) {
	var a ramDisk
	hold, release := io.Pipe()
	o, err := m.h.open(context.Background(), "/ramdisk", machineCall{Name: name, Size: size}, &a, hold)
	if err != nil {
		return testbed.RAMDisk{}, err
	}
	return testbed.RAMDisk{Path: a.Path, On: a.On, Remove: func() error {
		defer o.end()
		_ = release.Close()
		return o.answer(&none{})
	}}, nil
}

// IOPressure implements testbed.Machine.
func (m machine) IOPressure() float64 {
	f, err := m.facts()
	if err != nil {
		return math.NaN()
	}
	return f.IOPressure
}

// Problems implements testbed.Machine.
func (m machine) Problems(opt testbed.Options) []testbed.Problem {
	all, err := ask[[]testbed.Problem](context.Background(), &m.h.client, "/problems", machineCall{Options: opt})
	if err != nil {
		return []testbed.Problem{{Name: "agent", Severity: testbed.Fatal, What: err.Error()}}
	}
	return all
}

// Environment implements testbed.Machine.
func (m machine) Environment() map[string]string {
	f, _ := m.facts()
	return f.Environment
}

// Poll implements testbed.Remote.
func (h *Host) Poll() (all []record.Sample) {
	if h.of != nil { // who polls all that the agent has started
		return nil
	}
	samples, _ := ask[[]record.Sample](context.Background(), &h.client, "/poll", none{})
	for _, s := range samples {
		switch s.Role {
		case testbed.RoleEngine: // the agent itself
			continue
		case testbed.RoleBox:
			if h.opt.Machine != nil { // the testbed looks at it
				continue
			}
			s.Process += "@" + h.on
		case testbed.RoleEmulator:
			s.Process += "@" + h.on
		}
		all = append(all, s)
	}
	return all
}
