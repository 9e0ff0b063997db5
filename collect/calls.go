package collect

import (
	"context"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// rest limits how often calls derived from a node's abilities are repeated. They may be expensive
// for the system (a listing of all objects, a walk over the servers' disks), and observing must not
// slow it down. After such a call, scheduled polls omit it until rest times its duration have
// passed since it began, so it takes at most a twentieth of the time. A node's own calls are made
// in every poll.
const rest = 20

// Calls returns the requests of one poll of a node: its own or, if it has none, those derived from
// its abilities.
func Calls(node system.Node) []system.Call {
	if m, ok := node.(system.Monitored); ok {
		return m.Calls()
	}
	calls := []system.Call{} // not nil, even if there is nothing to request
	if s, ok := node.(system.Stats); ok {
		calls = append(calls, system.Call{Name: "stats", Read: func(ctx context.Context) ([]system.Reading, error) {
			h, err := s.Stats(ctx)
			return holdings(h), err
		}})
	}
	if s, ok := node.(system.Lister); ok {
		calls = append(calls, system.Call{Name: "list", Read: func(ctx context.Context) ([]system.Reading, error) {
			return listing(ctx, s)
		}})
	}
	if s, ok := node.(system.Healther); ok {
		calls = append(calls, system.Call{Name: "health", Read: func(ctx context.Context) ([]system.Reading, error) {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			return nil, s.Health(ctx)
		}})
	}
	return calls
}

// holdings returns the readings that the system reports.
func holdings(h system.Holdings) (out []system.Reading) {
	for _, r := range []struct {
		name  string
		value int64
	}{
		{"objects", h.Objects}, {system.ReadAbsolute, h.Absolute}, {system.ReadDisk, h.Disk},
		{system.ReadEntries, h.Entries}, {system.ReadInodes, h.Inodes},
	} {
		if r.value != -1 {
			out = append(out, system.Reading{Name: r.name, Value: float64(r.value)})
		}
	}
	return out
}

// listing counts objects and adds up their sizes; if one size is unknown, it returns no sum.
func listing(ctx context.Context, node system.Lister) ([]system.Reading, error) {
	var files, bytes int64
	known := true
	err := node.List(ctx, func(o system.Object) error {
		files, bytes, known = files+1, bytes+o.Size, known && o.Size >= 0
		return nil
	})
	out := []system.Reading{{Name: system.ReadFiles, Value: float64(files)}}
	if known {
		out = append(out, system.Reading{Name: system.ReadFileBytes, Value: float64(bytes)})
	}
	return out, err
}
