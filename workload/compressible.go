package workload

import (
	"bytes"
	"io"
	"math"
)

// Compressible is a [Content] of which a share compresses to nearly nothing: in
// each page of 4 KiB (of the whole object, when that is smaller) the first part
// is the content's, the rest a text of eight letters, repeated. It is no page of
// zeros, which file systems and programs treat in ways of their own.
type Compressible struct {
	Content
	Share float64 // of the bytes, 0 to 1
}

const page = 4 << 10

// filling is a page of what compresses.
var filling = [page]byte(bytes.Repeat([]byte("plimsoll"), page/8))

// CompressibleReader reads a Compressible from any offset. It is not safe for
// use by several goroutines.
type CompressibleReader struct {
	random *Reader // the part that does not compress, without gaps
	size   int64
	off    int64
	unit   int64 // bytes after which the pattern begins anew
	head   int64 // of them, the first ones are random
}

// Reader returns a reader at the start of the object.
func (c Compressible) Reader() *CompressibleReader {
	r := &CompressibleReader{size: c.Size, unit: min(page, max(1, c.Size))}
	r.head = int64(math.Round((1 - c.Share) * float64(r.unit)))
	stream := c.Content
	stream.Size = math.MaxInt64
	r.random = stream.Reader()
	return r
}

// Seek implements [io.Seeker], as [Reader.Seek] does.
func (r *CompressibleReader) Seek(off int64, whence int) (int64, error) {
	off, err := sought(off, whence, r.off, r.size)
	if err != nil {
		return 0, err
	}
	r.off = off
	_, err = r.random.Seek(off/r.unit*r.head+min(off%r.unit, r.head), io.SeekStart)
	return off, err
}

// Read implements [io.Reader].
func (r *CompressibleReader) Read(p []byte) (int, error) {
	if r.off >= r.size {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), r.size-r.off)]
	for rest := p; len(rest) > 0; {
		at := r.off % r.unit
		var n int
		if at < r.head {
			n, _ = r.random.Read(rest[:min(int64(len(rest)), r.head-at)])
		} else {
			n = copy(rest, filling[at:r.unit])
		}
		r.off += int64(n)
		rest = rest[n:]
	}
	return len(p), nil
}

// Check compares p with the next len(p) bytes and moves past them, as
// [Reader.Check] does; it overwrites p.
func (r *CompressibleReader) Check(p []byte) (at int64, ok bool) {
	beyond := r.off+int64(len(p)) > r.size
	if beyond {
		p = p[:max(r.size-r.off, 0)]
	}
	for len(p) > 0 {
		place := r.off % r.unit
		var n int
		if place < r.head {
			n = int(min(int64(len(p)), r.head-place))
			begin := r.random.off
			if at, ok := r.random.Check(p[:n]); !ok {
				return r.off + at - begin, false
			}
		} else {
			want := filling[place:r.unit]
			n = min(len(p), len(want))
			if !bytes.Equal(p[:n], want[:n]) {
				return r.off + int64(differs(p[:n], want)), false
			}
		}
		r.off += int64(n)
		p = p[n:]
	}
	if beyond {
		return max(r.size, r.off), false
	}
	return 0, true
}

// differs is the index of the first byte of a that is not the one of b; the two
// are known to differ within len(a).
func differs(a, b []byte) int {
	i := 0
	for a[i] == b[i] {
		i++
	}
	return i
}
