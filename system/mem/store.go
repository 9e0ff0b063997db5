package mem

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
)

// store holds the objects of the servers and the timing of operations. Its lock also guards the
// nodes and the swarm.
type store struct {
	mu      sync.Mutex
	model   Model
	faults  *rand.Rand
	objects map[system.Ref]*object
	swarm
}

// object is immutable: an update replaces it.
type object struct {
	kind, name string
	data       []byte
	durable    time.Time
}

func (o *object) size() int64 { return int64(len(o.data)) }

// part returns the existing bytes of the range of count bytes at off.
func (o *object) part(off, count int64) []byte {
	off = min(off, o.size())
	return o.data[off : off+min(count, o.size()-off)]
}

// Kinds of objects. Refs are KIND/NAME, or dir/NAME/ENTRY.
const (
	immutable = "object"
	mutable   = "mutable"
	directory = "dir"
)

func refOf(kind, name string) system.Ref { return system.Ref(kind + "/" + disk.FileName(name)) }

// find returns the object of a ref, which must be of the given kind; "" accepts any.
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

// fate is the random outcome of an operation.
type fate struct {
	hang, fail, corrupt, cut bool
	at                       float64 // position in the object, 0 to 1
}

// draw uses the same number of random values for each operation, whatever the operation.
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
