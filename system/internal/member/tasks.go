package member

import (
	"context"
	"crypto/rand"
	"io"
	"path/filepath"
	"slices"

	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Merge appends the elements of more that are missing in list.
func Merge(list, more []string) []string {
	for _, a := range more {
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// Receive writes the size bytes of r to a new file in a directory, which the caller renames or
// removes. It passes each block to each, for hashing.
func Receive(
	ctx context.Context, files testbed.Files, dir string, size, block int64, r io.Reader, each func([]byte),
) (path string, err error) {
	path = filepath.Join(dir, ".publish-"+rand.Text())
	body, err := web.Exactly(r, size)
	if err != nil {
		return path, err
	}
	b := &blocks{size: int(block), each: each}
	if err = files.Write(ctx, path, 0o644, io.TeeReader(body, b)); err == nil && len(b.part) > 0 {
		each(b.part)
	}
	return path, err
}

// blocks splits the written bytes into blocks of a fixed size.
type blocks struct {
	size int
	part []byte // the incomplete block
	each func([]byte)
}

// Write implements io.Writer.
func (b *blocks) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), b.size-len(b.part))
		b.part, rest = append(b.part, rest[:n]...), rest[n:]
		if len(b.part) == b.size {
			b.each(b.part)
			b.part = b.part[:0]
		}
	}
	return len(p), nil
}
