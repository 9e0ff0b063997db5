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
		answered := x.answer(d, err)
		if err != nil {
			return
		}
		if answered == nil {
			_, _ = io.Copy(io.Discard, x.in) // until the caller removes it, or is gone
		}
		_ = x.answer(none{}, d.Remove())
	})
}

// machine is that of an agent's host.
type machine struct{ h *Host }

func (m machine) facts() facts {
	return askOr(m.h, "/facts", none{}, facts{IOPressure: math.NaN()})
}

// Name implements testbed.Machine.
func (m machine) Name() string { return m.h.opt.On }

// CPUs implements testbed.Machine.
func (m machine) CPUs() int {
	if m.h.cpus.Load() == 0 {
		m.h.cpus.Store(int64(m.facts().CPUs))
	}
	return int(m.h.cpus.Load())
}

// AvailableMemory implements testbed.Machine.
func (m machine) AvailableMemory() (float64, error) {
	f, err := ask[facts](context.Background(), m.h, "/facts", none{})
	return f.Memory, err
}

// Filesystem implements testbed.Machine.
func (m machine) Filesystem(dir string) (testbed.Filesystem, error) {
	return ask[testbed.Filesystem](context.Background(), m.h, "/filesystem", machineCall{Name: dir})
}

// RAMDisk implements testbed.Machine. It ends with the connection, too.
func (m machine) RAMDisk(name string, size int64) (d testbed.RAMDisk, err error) {
	hold, release := io.Pipe()
	o, err := m.h.open(context.Background(), "/ramdisk", machineCall{Name: name, Size: size}, &d, hold)
	if err == nil {
		d.Remove = func() error {
			defer o.end()
			_ = release.Close()
			return o.answer(&none{})
		}
	}
	return d, err
}

// IOPressure implements testbed.Machine.
func (m machine) IOPressure() float64 { return m.facts().IOPressure }

// Problems implements testbed.Machine.
func (m machine) Problems(opt testbed.Options) []testbed.Problem {
	all, err := ask[[]testbed.Problem](context.Background(), m.h, "/problems", machineCall{Options: opt})
	if err != nil {
		return []testbed.Problem{{Name: "agent", Severity: testbed.Fatal, What: err.Error()}}
	}
	return all
}

// Environment implements testbed.Machine.
func (m machine) Environment() map[string]string { return m.facts().Environment }

// Poll implements testbed.Remote.
func (h *Host) Poll() (all []record.Sample) {
	if h.of != nil { // who polls all that the agent has started
		return nil
	}
	for _, s := range askOr(h, "/poll", none{}, []record.Sample(nil)) {
		switch s.Role {
		case testbed.RoleEngine: // the agent itself
			continue
		case testbed.RoleBox:
			if h.opt.Machine != nil { // the testbed looks at it
				continue
			}
			s.Process += "@" + h.opt.On
		case testbed.RoleEmulator:
			s.Process += "@" + h.opt.On
		}
		all = append(all, s)
	}
	return all
}
