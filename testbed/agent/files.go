package agent

import (
	"context"
	"io"
	"io/fs"
	"time"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// fileTimeout limits file operations without a context.
const fileTimeout = 10 * time.Minute

// Walk streams the entries of a directory tree.
func (s *server) Walk(x *exchange, dir string) {
	if x.answer(nil) {
		x.fail(s.host.Files().Walk(dir, func(e testbed.Entry) error { return x.enc.Encode(e) }))
	}
}

// Files implements testbed.Host.
func (h *Host) Files() testbed.Files { return remoteFiles{h} }

// remoteFiles are the files of the agent's host.
type remoteFiles struct{ h *Host }

func (f remoteFiles) do(method string, args ...any) error {
	ctx, cancel := context.WithTimeout(context.Background(), fileTimeout)
	defer cancel()
	return f.h.call(ctx, "/files/"+method, args...)
}

// MkdirAll implements testbed.Files.
func (f remoteFiles) MkdirAll(dir string, mode fs.FileMode) error { return f.do("MkdirAll", dir, mode) }

// Rename implements testbed.Files.
func (f remoteFiles) Rename(from, to string) error { return f.do("Rename", from, to) }

// RemoveAll implements testbed.Files.
func (f remoteFiles) RemoveAll(path string) error { return f.do("RemoveAll", path) }

// Write implements testbed.Files.
func (f remoteFiles) Write(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, fileTimeout)
		defer cancel()
	}
	return f.h.hear(ctx, "/files/Write", r, []any{path, mode})
}

// Open implements testbed.Files.
func (f remoteFiles) Open(path string) (io.ReadCloser, error) {
	o, err := f.h.open(context.Background(), "/files/Open", nil, []any{path})
	if err != nil {
		return nil, err
	}
	return o, nil
}

// ReadFile implements testbed.Files.
func (f remoteFiles) ReadFile(path string) ([]byte, error) {
	return ask[[]byte](context.Background(), f.h, "/files/ReadFile", path)
}

// Walk implements testbed.Files.
func (f remoteFiles) Walk(dir string, each func(testbed.Entry) error) error {
	o, err := f.h.open(context.Background(), "/agent/Walk", nil, []any{dir})
	if err != nil {
		return err
	}
	defer o.end()
	for {
		var e testbed.Entry
		if err := o.dec.Decode(&e); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := each(e); err != nil {
			return err
		}
	}
}

// Attributes implements testbed.Files.
func (f remoteFiles) Attributes(dir string) bool {
	return askOr(f.h, false, "/files/Attributes", dir)
}
