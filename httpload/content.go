package httpload

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/workload"
)

// keepInMemory limits the bytes of seeded content that are generated once and kept: for
// small objects, comparing with memory is cheaper than setting up a cipher per request.
const keepInMemory = 8 << 20

// expected is the content of an object: in memory (generated or mapped), or seeded.
type expected struct {
	mem    []byte
	seeded *workload.Content
}

// comparer compares the bytes of one answer, piece by piece.
type comparer struct {
	e      *expected
	off    int64
	reader *workload.Reader
}

func (e *expected) at(off int64) comparer {
	c := comparer{e: e, off: off}
	if e.mem == nil && e.seeded != nil {
		c.reader = e.seeded.Reader()
		c.reader.Seek(off, io.SeekStart) // off is within the object
	}
	return c
}

// check compares p, which it may overwrite, with the next expected bytes.
func (c *comparer) check(p []byte) bool {
	if c.reader != nil {
		return c.reader.Check(p)
	}
	if c.e.mem == nil {
		return true
	}
	want := c.e.mem[min(c.off, int64(len(c.e.mem))):]
	c.off += int64(len(p))
	return bytes.Equal(p, want[:min(len(want), len(p))])
}

// openExpected prepares the content of the objects, which stays mapped until the process ends.
func openExpected(objects []Object) (all []expected, err error) {
	all = make([]expected, len(objects))
	memory := int64(0)
	for i := range objects {
		o := &objects[i]
		switch {
		case o.Content != nil:
			all[i].seeded = o.Content
			if memory+o.Size <= keepInMemory {
				memory += o.Size
				all[i].mem = make([]byte, o.Size)
				o.Content.Reader().Read(all[i].mem)
			}
		case o.Reference != "":
			if all[i].mem, err = mapFile(o.Reference, o.Size); err != nil {
				return nil, fmt.Errorf("httpload: reference of object %d: %w", i, err)
			}
		}
	}
	return all, nil
}

// mapFile maps a file of a known size for reading. Its pages are in the page cache, and shared
// with a server that serves the same file.
func mapFile(path string, size int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil && st.Size() != size {
		err = fmt.Errorf("%s has %d bytes, the object has %d", path, st.Size(), size)
	}
	if err != nil || size == 0 { // an empty file cannot be mapped
		return []byte{}, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	return b, os.NewSyscallError("mmap", err)
}
