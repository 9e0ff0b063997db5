package agent

import (
	"context"
	"io"
	"io/fs"
	"math"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// RAMDisk creates a RAM disk that exists until the caller removes it or disconnects.
func (s *server) RAMDisk(x *exchange, name string, size int64) {
	d, err := s.host.Machine().RAMDisk(name, size)
	if answered := x.answer(err, d); err == nil {
		if answered {
			_, _ = io.Copy(io.Discard, x.in)
		}
		x.answer(d.Remove())
	}
}

// machine is the machine of an agent's host.
type machine struct{ h *Host }

// Name implements testbed.Machine.
func (m machine) Name() string { return m.h.opt.On }

// CPUs implements testbed.Machine.
func (m machine) CPUs() int {
	if m.h.cpus.Load() == 0 {
		m.h.cpus.Store(int64(askOr(m.h, 0, "/machine/CPUs")))
	}
	return int(m.h.cpus.Load())
}

// AvailableMemory implements testbed.Machine.
func (m machine) AvailableMemory() (float64, error) {
	return ask[float64](context.Background(), m.h, "/machine/AvailableMemory")
}

// Filesystem implements testbed.Machine.
func (m machine) Filesystem(dir string) (testbed.Filesystem, error) {
	return ask[testbed.Filesystem](context.Background(), m.h, "/machine/Filesystem", dir)
}

// RAMDisk implements testbed.Machine. The disk is also removed when the connection ends.
func (m machine) RAMDisk(name string, size int64) (d testbed.RAMDisk, err error) {
	hold, release := io.Pipe()
	o, err := m.h.open(context.Background(), "/agent/RAMDisk", hold, []any{name, size}, &d)
	if err == nil {
		d.Remove = func() error {
			defer o.end()
			defer time.AfterFunc(callTimeout, o.end).Stop()
			_ = release.Close()
			return o.answer()
		}
	}
	return d, err
}

// IOPressure implements testbed.Machine.
func (m machine) IOPressure() float64 { return askOr(m.h, math.NaN(), "/machine/IOPressure") }

// Problems implements testbed.Machine.
func (m machine) Problems(opt testbed.Options) []testbed.Problem {
	all, err := ask[[]testbed.Problem](context.Background(), m.h, "/machine/Problems", opt)
	if err != nil {
		return []testbed.Problem{{Name: "agent", Blocking: true, What: err.Error()}}
	}
	return all
}

// Environment implements testbed.Machine.
func (m machine) Environment() map[string]string {
	return askOr(m.h, map[string]string(nil), "/machine/Environment")
}

// pollTimeout limits how long a silent machine delays the samples of all.
const pollTimeout = 5 * time.Second

// Poll implements testbed.Remote.
func (h *Host) Poll() (all []record.Sample) {
	if h.of != nil { // that host polls everything that the agent has started
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), pollTimeout)
	defer cancel()
	polled, _ := ask[[]record.Sample](ctx, h, "/testbed/Poll", time.Now())
	for _, s := range polled {
		if s.Role == testbed.RoleEngine || s.Role == testbed.RoleBox && h.opt.Machine != nil {
			continue // the agent itself, or a machine that the testbed samples
		}
		if s.Role == testbed.RoleBox || s.Role == testbed.RoleEmulator {
			s.Process += "@" + h.opt.On
		}
		all = append(all, s)
	}
	return all
}

// fileTimeout limits file operations without a context.
const fileTimeout = 10 * time.Minute

// Walk streams the entries of a directory tree.
func (s *server) Walk(x *exchange, dir string) {
	if x.answer(nil) {
		x.fail(s.host.Files().Walk(dir, func(e testbed.Entry) error { return x.enc.Encode(e) }))
	}
}

// Files implements testbed.Host.
func (h *Host) Files() testbed.Files { return remoteFiles{h} }

// remoteFiles are the files of the agent's host.
type remoteFiles struct{ h *Host }

func (f remoteFiles) do(method string, args ...any) error {
	ctx, cancel := context.WithTimeout(context.Background(), fileTimeout)
	defer cancel()
	return f.h.call(ctx, "/files/"+method, args...)
}

// MkdirAll implements testbed.Files.
func (f remoteFiles) MkdirAll(dir string, mode fs.FileMode) error { return f.do("MkdirAll", dir, mode) }

// Rename implements testbed.Files.
func (f remoteFiles) Rename(from, to string) error { return f.do("Rename", from, to) }

// RemoveAll implements testbed.Files.
func (f remoteFiles) RemoveAll(path string) error { return f.do("RemoveAll", path) }

// Write implements testbed.Files.
func (f remoteFiles) Write(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, fileTimeout)
		defer cancel()
	}
	return f.h.hear(ctx, "/files/Write", r, []any{path, mode})
}

// Open implements testbed.Files.
func (f remoteFiles) Open(path string) (io.ReadCloser, error) {
	o, err := f.h.open(context.Background(), "/files/Open", nil, []any{path})
	if err != nil {
		return nil, err
	}
	return o, nil
}

// ReadFile implements testbed.Files.
func (f remoteFiles) ReadFile(path string) ([]byte, error) {
	return ask[[]byte](context.Background(), f.h, "/files/ReadFile", path)
}

// Walk implements testbed.Files.
func (f remoteFiles) Walk(dir string, each func(testbed.Entry) error) error {
	o, err := f.h.open(context.Background(), "/agent/Walk", nil, []any{dir})
	if err != nil {
		return err
	}
	defer o.end()
	for {
		var e testbed.Entry
		if err := o.dec.Decode(&e); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := each(e); err != nil {
			return err
		}
	}
}

// SupportsXattrs implements testbed.Files.
func (f remoteFiles) SupportsXattrs(dir string) bool {
	return askOr(f.h, false, "/files/SupportsXattrs", dir)
}
