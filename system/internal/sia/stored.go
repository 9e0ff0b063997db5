package sia

import (
	"sync"

	"github.com/plimsoll-project/plimsoll/system"
)

// Objects is what a node knows of the objects of a renter, whichever API that has.
type Objects struct {
	Space  Space
	Stored Stored
}

// Named implements system.Namer. An attached node marks what it stores, in all
// sessions of a run alike where the run has such.
func (o *Objects) Named(name string) system.Ref { return o.Space.Ref(name) }

// Adopt implements system.Adopter.
func (o *Objects) Adopt(found system.Object) { o.Stored.Add(found.Ref, found.Size) }

// Size is that of an object which was put here, or else what ask finds.
func (o *Objects) Size(ref system.Ref, ask func() (int64, error)) (int64, error) {
	if size, ours := o.Stored.Size(ref); ours && size >= 0 {
		return size, nil
	}
	return ask()
}

// Stored is what a node has put and not deleted: all that may be deleted from a
// renter that is someone's. The zero value is empty.
type Stored struct {
	mu    sync.Mutex
	sizes map[system.Ref]int64
}

// Add enters an object of size bytes; -1: they are not known.
func (s *Stored) Add(ref system.Ref, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sizes == nil {
		s.sizes = map[system.Ref]int64{}
	}
	s.sizes[ref] = size
}

// Remove forgets an object.
func (s *Stored) Remove(ref system.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sizes, ref)
}

// Size is an object's, in bytes, if it is there.
func (s *Stored) Size(ref system.Ref) (size int64, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size, there = s.sizes[ref]
	return size, there
}

// Len is how many there are.
func (s *Stored) Len() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.sizes))
}
