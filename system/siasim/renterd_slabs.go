package siasim

import (
	"context"
	"fmt"
	"time"
)

// renterdState is what only renterd has.
type renterdState struct {
	settings uploadSettings
	buckets  []bucketJSON // null when there are none
	slabs    []*file      // all that were ever sent to hosts
	buffers  []*buffer    // that wait to be full
}

func (r *renterdState) init(c Config) {
	r.settings.Packing.Enabled = true
	r.settings.Packing.Soft = 1 << 20
	r.settings.Redundancy.Min, r.settings.Redundancy.Total = c.Data, c.Data+c.Parity
	r.buckets = []bucketJSON{{Name: "default"}}
}

func (r *renterdState) has(bucket string) bool {
	for _, b := range r.buckets {
		if b.Name == bucket {
			return true
		}
	}
	return false
}

// part is what a slab holds of an object. A slab is a file of one chunk; until
// its buffer is full it is nowhere but in the node.
type part struct {
	of          *file
	off, length int64
}

// buffer is a slab that is being filled.
type buffer struct {
	slab *file
	size int64
}

// newSlab is a slab that is not on its way yet.
func (s *Sim) newSlab(minimum, total int) *file {
	s.serial++
	return &file{
		path: fmt.Sprintf("%sslab %d", bucketMark, s.serial), serial: s.serial, made: s.now, changed: s.now,
		size: s.conf.Sector * int64(minimum), data: minimum, full: total, pieces: total, chunks: 1, on: map[int]int{},
	}
}

func (s *Sim) sendSlab(slab *file) {
	s.renterd.slabs = append(s.renterd.slabs, slab)
	s.queue(slab)
}

// putSlabs makes an object of what was received. It returns the slabs that must
// be on hosts before the put is answered.
func (s *Sim) putSlabs(path string, got received, minimum, total int, packing bool) (f *file, wait []*file) {
	s.serial++
	f = &file{path: path, serial: s.serial, size: got.size, made: s.now, changed: s.now, data: minimum, full: total, pieces: total}
	s.take(f, got)
	whole := s.conf.Sector * int64(minimum)
	for left := got.size; left > 0; {
		if left < whole && packing {
			return f, append(wait, s.pack(f, left, minimum, total)...)
		}
		slab := s.newSlab(minimum, total)
		n := min(left, whole)
		f.slabs = append(f.slabs, part{slab, 0, n})
		s.sendSlab(slab)
		wait = append(wait, slab)
		left -= n
	}
	return f, wait
}

// pack puts the end of an object into the buffer of its redundancy, and into the
// next one what does not fit. A full one is sent.
func (s *Sim) pack(f *file, left int64, minimum, total int) (sent []*file) {
	for left > 0 {
		var b *buffer
		at := -1
		for i, one := range s.renterd.buffers {
			if one.slab.data == minimum && one.slab.full == total {
				b, at = one, i
			}
		}
		if b == nil {
			b = &buffer{slab: s.newSlab(minimum, total)}
			s.renterd.buffers = append(s.renterd.buffers, b)
			at = len(s.renterd.buffers) - 1
		}
		n := min(left, b.slab.size-b.size)
		f.slabs = append(f.slabs, part{b.slab, b.size, n})
		b.size += n
		left -= n
		if b.size == b.slab.size {
			s.renterd.buffers = append(s.renterd.buffers[:at], s.renterd.buffers[at+1:]...)
			s.sendSlab(b.slab)
			sent = append(sent, b.slab)
		}
	}
	return sent
}

// placed waits until all shards of a slab are on hosts.
func (s *Sim) placed(ctx context.Context, slab *file) bool {
	for {
		s.mu.Lock()
		s.advance()
		ok := slab.placed >= slab.full
		wait := s.conf.BlockTime
		for _, j := range s.jobs {
			if j.file == slab {
				if at, comes := s.link.reaches(j.begin+float64(slab.full)*float64(s.conf.Sector), s.now, s.faults.Stall); comes {
					wait = min(wait, max(at-s.now, time.Millisecond))
				}
			}
		}
		s.mu.Unlock()
		if ok {
			return true
		}
		if sleep(ctx, wait) != nil {
			return false
		}
	}
}

// slabHealth is renterd's: 1 is full redundancy, 0 the next loss is fatal, less
// than that lost. What is in a buffer is well.
func (f *file) slabHealth() float64 {
	if f.placed < f.full || f.full == f.data {
		return 1
	}
	return float64(f.full-f.lost-f.data) / float64(f.full-f.data)
}

// healthy reports whether an object can be rebuilt.
func (f *file) healthy() bool {
	for _, p := range f.slabs {
		if p.of.slabHealth() < 0 {
			return false
		}
	}
	return true
}
