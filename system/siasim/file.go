package siasim

import (
	"math"
	"time"
)

// file is an object that was put. Its pieces go through the uplink in order: of
// a stream first those that rebuild every chunk, then, chunk by chunk, the
// others; of a source on the renter's disk chunk by chunk.
type file struct {
	path       string
	serial     int
	size       int64
	sum        string // SHA-256 of the content, lower-case hex
	md5        string
	content    []byte // nil: it was not kept
	local      string // source on the renter's disk
	mime       string
	made       time.Duration
	changed    time.Duration
	incomplete bool // its content did not come to an end
	data, full int  // pieces of a chunk that rebuild it; that were asked for
	pieces     int  // of a chunk that there will be: full, or more
	chunks     int
	stream     bool
	placed     int         // sectors on hosts, counted and paid
	on         map[int]int // sectors by host
	lost       int         // sectors on hosts that are gone
	was        bool        // it had its full redundancy
	slabs      []part      // renterd: where its bytes are; nil: siad's file
}

// job is a file on its way through the uplink.
type job struct {
	file  *file
	begin float64 // what the uplink will have carried before its first byte
}

// newFile makes a file and queues it. Its size is known by now.
func (s *Sim) newFile(path string, size int64, data, parity int, stream bool) *file {
	s.serial++
	f := &file{
		path: path, serial: s.serial, size: size, made: s.now, changed: s.now,
		data: data, full: data + parity, pieces: data + parity, stream: stream, on: map[int]int{},
	}
	chunk := int64(data) * s.conf.Sector
	f.chunks = int((size + chunk - 1) / chunk)
	if o := s.faults.Overshoot; o != nil {
		f.pieces = max(f.full, int(math.Round(o.draw(float64(f.full)/float64(data), s.rand.Float64())*float64(data))))
	}
	s.files[path] = f
	return f
}

// draw is the redundancy that a number u from 0 to 1 stands for.
func (o Overshoot) draw(nominal, u float64) float64 {
	if o.Max <= nominal || o.Mean <= nominal {
		return nominal
	}
	return nominal + (o.Max-nominal)*math.Pow(u, (o.Max-nominal)/(o.Mean-nominal)-1)
}

// queue sends a file's pieces through the uplink after all others.
func (s *Sim) queue(f *file) {
	f.was = f.sectors() == 0
	begin := max(s.link.carried(s.now, s.faults.Stall), s.link.tail)
	s.link.tail = begin + float64(f.sectors())*float64(s.conf.Sector)
	s.jobs = append(s.jobs, &job{file: f, begin: begin})
}

// sectors are all that will be on hosts.
func (f *file) sectors() int { return f.chunks * f.pieces }

// worst is how many pieces the chunk that is worst off has.
func (f *file) worst() int {
	done := f.placed
	if f.stream {
		if first := f.chunks * f.data; done >= first {
			return f.data + max(0, done-first-(f.chunks-1)*(f.pieces-f.data))
		}
		return max(0, done-(f.chunks-1)*f.data)
	}
	return max(0, done-(f.chunks-1)*f.pieces)
}

// redundancy is that of the chunk that is worst off, without what is lost.
func (f *file) redundancy() float64 {
	if f.chunks == 0 {
		if f.incomplete {
			return 0
		}
		return float64(f.full) / float64(f.data)
	}
	lost := float64(f.lost) / float64(f.chunks)
	return max(0, float64(f.worst())-lost) / float64(f.data)
}

// accepted is how many sectors must be on hosts before an upload is answered.
func (f *file) accepted() int {
	if f.stream {
		return f.chunks * f.data
	}
	return 0
}

// health is siad's: 0 at full redundancy, 1 when the next loss is fatal, more
// below that.
func (f *file) health() float64 {
	good := min(f.redundancy()*float64(f.data), float64(f.full))
	return 1 - (good-float64(f.data))/float64(f.full-f.data)
}

// missing is how many sectors a repair would make.
func (f *file) missing() int {
	return max(0, f.chunks*f.full-(f.placed-f.lost))
}

// remove forgets a file; what is not uploaded yet is not uploaded any more.
func (s *Sim) remove(f *file) {
	delete(s.files, f.path)
	s.keep -= int64(len(f.content))
	for i, j := range s.jobs {
		if j.file == f {
			s.jobs = append(s.jobs[:i:i], s.jobs[i+1:]...)
			break
		}
	}
	s.gone.files++
	s.gone.bytes += f.size
	s.gone.sectors += int64(f.placed)
}
