package sia

import (
	"sync"

	"github.com/plimsoll-project/plimsoll/system"
)

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
