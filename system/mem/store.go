package mem

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
)

// store is the servers: what they hold, and what everything takes. Its lock is that of the nodes
// and of the swarm, too.
type store struct {
	mu      sync.Mutex
	model   Model
	faults  *rand.Rand
	objects map[system.Ref]*object
	paid    int64 // bytes put so far
	swarm
}

// object is never changed: an update replaces it.
type object struct {
	kind, name string
	data       []byte
	durable    time.Time
}

func (o *object) size() int64 { return int64(len(o.data)) }

// part is what there is of count bytes at off.
func (o *object) part(off, count int64) []byte {
	off = min(off, o.size())
	return o.data[off : off+min(count, o.size()-off)]
}

// Refs are KIND/NAME, or dir/NAME/ENTRY.
const (
	immutable = "object"
	mutable   = "mutable"
	directory = "dir"
)

func refOf(kind, name string) system.Ref { return system.Ref(kind + "/" + disk.FileName(name)) }

// find returns the object of a ref, which must be of a kind; "": of any.
func (s *store) find(ref system.Ref, kind string) (*object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[ref]
	switch {
	case o == nil:
		return nil, system.ErrNotFound
	case kind != "" && o.kind != kind:
		return nil, fmt.Errorf("it is of kind %s: %w", o.kind, system.ErrBadRef)
	}
	return o, nil
}

// fate is what chance does to an operation.
type fate struct {
	hang, fail, corrupt, cut bool
	at                       float64 // where in the object, 0 to 1
}

// draw takes the same amount of chance for each operation, whatever is asked for.
func (s *store) draw() fate {
	m, n := s.model, s.faults
	return fate{
		hang:    n.Float64() < m.Hangs,
		fail:    n.Float64() < m.Errors,
		corrupt: n.Float64() < m.Corrupt,
		cut:     n.Float64() < m.Truncate,
		at:      n.Float64(),
	}
}
