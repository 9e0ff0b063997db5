package httpload

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/plimsoll-project/plimsoll/workload"
)

// keepInMemory bounds the bytes of seeded content that are made once and kept:
// for small objects a comparison with memory is cheaper than setting up a
// cipher for every request.
const keepInMemory = 8 << 20

// expected is what an object holds: in memory (made or mapped), or seeded.
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

// check compares p, which it may overwrite, with what comes next. at is the
// offset of the first wrong byte within the object.
func (c *comparer) check(p []byte) (at int64, ok bool) {
	if c.reader != nil {
		return c.reader.Check(p)
	}
	if c.e.mem == nil {
		return 0, true
	}
	want := c.e.mem[min(c.off, int64(len(c.e.mem))):]
	want = want[:min(len(want), len(p))]
	if !bytes.Equal(p, want) {
		i := 0
		for i < len(want) && p[i] == want[i] {
			i++
		}
		return c.off + int64(i), false
	}
	c.off += int64(len(p))
	return 0, true
}

// openExpected prepares what the objects hold. release unmaps.
func openExpected(objects []Object) (all []expected, release func(), err error) {
	var maps []func()
	release = func() {
		for _, f := range maps {
			f()
		}
	}
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
				o.Content.ReadAt(all[i].mem, 0)
			}
		case o.Reference != "":
			mem, unmap, err := mapFile(o.Reference)
			if err != nil {
				release()
				return nil, nil, fmt.Errorf("httpload: reference of object %d: %w", i, err)
			}
			maps = append(maps, unmap)
			if int64(len(mem)) != o.Size {
				release()
				return nil, nil, fmt.Errorf("httpload: reference of object %d: %s has %d bytes, the object has %d", i,
					o.Reference, len(mem), o.Size)
			}
			all[i].mem = mem
		}
	}
	return all, release, nil
}

// readWhole is for an empty file, which cannot be mapped, and for systems
// where files are not mapped.
func readWhole(path string) ([]byte, func(), error) {
	b, err := os.ReadFile(path)
	if b == nil {
		b = []byte{}
	}
	return b, func() {}, err
}
