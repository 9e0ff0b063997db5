package mem

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
)

// store is the servers: what they hold, and what everything takes.
type store struct {
	mu      sync.Mutex
	model   Model
	faults  *rand.Rand
	objects map[system.Ref]*object
	paid    int64 // bytes put so far
	swarm   *swarm
}

// object is never changed: an update replaces it.
type object struct {
	name    string
	size    int64
	chunks  [][]byte
	durable time.Time
}

// length is the size of an object; nil has none.
func (o *object) length() int64 {
	if o == nil {
		return 0
	}
	return o.size
}

func newStore(m Model, seed uint64) *store {
	return &store{model: m, objects: map[system.Ref]*object{}, faults: rand.New(rand.NewPCG(seed, 2))}
}

// Refs are KIND/NAME, or dir/NAME/ENTRY.
const (
	immutable = "object"
	mutable   = "mutable"
	directory = "dir"
)

func refOf(kind string, names ...string) system.Ref {
	for i, n := range names {
		names[i] = disk.FileName(n)
	}
	return system.Ref(kind + "/" + strings.Join(names, "/"))
}

// valid says what no ref of ours can look like.
func valid(ref system.Ref) error {
	parts := strings.Split(string(ref), "/")
	kind, names := parts[0], parts[1:]
	ok := slices.Contains([]string{immutable, mutable}, kind) && len(names) == 1 || kind == directory &&
		(len(names) == 1 || len(names) == 2)
	for _, n := range names {
		ok = ok && disk.Valid(n) == nil
	}
	if !ok {
		return fmt.Errorf("%.100q: %w", ref, system.ErrBadRef)
	}
	return nil
}

// find returns the object of a ref.
func (s *store) find(ref system.Ref) (*object, error) {
	if err := valid(ref); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[ref]
	if !ok {
		return nil, fmt.Errorf("%s: %w", ref, system.ErrNotFound)
	}
	return o, nil
}

// keep stores an object; it is durable after the model's time to settle.
func (s *store) keep(ref system.Ref, o *object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.durable = time.Now().Add(s.model.Settle)
	s.objects[ref] = o
	s.paid += o.size
}

// fate is what chance does to an operation.
type fate struct {
	hang, fail, corrupt, cut bool
	at                       float64 // where in the object, 0 to 1
}

// draw takes the same amount of chance for each operation, whatever is asked for.
func (s *store) draw() (Model, fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, n := s.model, s.faults
	return m, fate{
		hang:    n.Float64() < m.Hangs,
		fail:    n.Float64() < m.Errors,
		corrupt: n.Float64() < m.Corrupt,
		cut:     n.Float64() < m.Truncate,
		at:      n.Float64(),
	}
}
