package member

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// Merge adds to list those of more that are not in it.
func Merge(list, more []string) []string {
	for _, a := range more {
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// Receive writes the size bytes of r to a new file in a directory, for the caller to
// rename or remove, and hands over each block on the way, to be hashed.
func Receive(
	ctx context.Context, files testbed.Files, dir string, size, block int64, r io.Reader, each func([]byte),
) (path string, err error) {
	path = filepath.Join(dir, ".publish-"+rand.Text())
	b := &blocks{r: r, size: size, left: size, buf: make([]byte, max(1, min(block, size))), each: each}
	return path, files.Write(ctx, path, 0o644, b)
}

// blocks reads size bytes, block by block.
type blocks struct {
	r          io.Reader
	size, left int64
	buf, rest  []byte // rest: of the block that is being read
	each       func([]byte)
}

func (b *blocks) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		if b.left == 0 {
			return 0, b.end()
		}
		block := b.buf[:min(b.left, int64(len(b.buf)))]
		if _, err := io.ReadFull(b.r, block); err != nil {
			return 0, fmt.Errorf("after %d of %d bytes: %w", b.size-b.left, b.size, err)
		}
		b.each(block)
		b.rest, b.left = block, b.left-int64(len(block))
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// end is io.EOF when r ends, too. A client that breaks off late would have published
// all the same.
func (b *blocks) end() error {
	switch n, err := b.r.Read(b.buf[:1]); {
	case n > 0:
		return fmt.Errorf("more than %d bytes", b.size)
	case err != nil && err != io.EOF:
		return fmt.Errorf("after %d bytes: %w", b.size, err)
	}
	return io.EOF
}
