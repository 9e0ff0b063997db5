package agent

import (
	"context"
	"io"
	"io/fs"
	"time"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// fileCall names a file of the agent's host, and what else an operation needs.
type fileCall struct {
	Path, To string
	Mode     fs.FileMode
}

// fileTimeout bounds operations on files that have no context.
const fileTimeout = 10 * time.Minute

// fileCalls are the operations, on the agent's side.
func (s *server) fileCalls(mux map[string]handler) {
	f := s.host.Files()
	plain := func(do func(fileCall) error) handler {
		return call(func(_ context.Context, q fileCall) (none, error) { return none{}, do(q) })
	}
	mux["/mkdir"] = plain(func(q fileCall) error { return f.MkdirAll(q.Path, q.Mode) })
	mux["/rename"] = plain(func(q fileCall) error { return f.Rename(q.Path, q.To) })
	mux["/remove"] = plain(func(q fileCall) error { return f.RemoveAll(q.Path) })
	mux["/attributes"] = call(func(_ context.Context, q fileCall) (bool, error) { return f.Attributes(q.Path), nil })
	mux["/write"] = stream(func(ctx context.Context, x *exchange, q fileCall) {
		_ = x.answer(none{}, f.Write(ctx, q.Path, q.Mode, x.in))
	})
	mux["/read"] = stream(func(_ context.Context, x *exchange, q fileCall) {
		r, err := f.Open(q.Path)
		if x.answer(none{}, err) != nil || err != nil {
			return
		}
		defer r.Close()
		if _, err := io.Copy(x, r); err != nil {
			x.fail(err)
		}
	})
	mux["/walk"] = stream(func(_ context.Context, x *exchange, q fileCall) {
		if x.answer(none{}, nil) != nil {
			return
		}
		x.fail(f.Walk(q.Path, func(e testbed.Entry) error { return x.enc.Encode(e) }))
	})
}

// Files implements testbed.Host.
func (h *Host) Files() testbed.Files { return remoteFiles{h} }

// remoteFiles are those of the agent's host.
type remoteFiles struct{ h *Host }

func (f remoteFiles) do(path string, q fileCall) error {
	ctx, cancel := context.WithTimeout(context.Background(), fileTimeout)
	defer cancel()
	_, err := ask[none](ctx, f.h, path, q)
	return err
}

// MkdirAll implements testbed.Files.
func (f remoteFiles) MkdirAll(dir string, mode fs.FileMode) error {
	return f.do("/mkdir", fileCall{Path: dir, Mode: mode})
}

// Rename implements testbed.Files.
func (f remoteFiles) Rename(from, to string) error {
	return f.do("/rename", fileCall{Path: from, To: to})
}

// RemoveAll implements testbed.Files.
func (f remoteFiles) RemoveAll(path string) error { return f.do("/remove", fileCall{Path: path}) }

// Write implements testbed.Files.
func (f remoteFiles) Write(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, fileTimeout)
		defer cancel()
	}
	o, err := f.h.open(ctx, "/write", fileCall{Path: path, Mode: mode}, &none{}, r)
	if err == nil {
		o.end()
	}
	return err
}

// Open implements testbed.Files.
func (f remoteFiles) Open(path string) (io.ReadCloser, error) {
	o, err := f.h.open(context.Background(), "/read", fileCall{Path: path}, &none{}, nil)
	if err != nil {
		return nil, err
	}
	return o, nil
}

// ReadFile implements testbed.Files.
func (f remoteFiles) ReadFile(path string) ([]byte, error) {
	r, err := f.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// Walk implements testbed.Files.
func (f remoteFiles) Walk(dir string, each func(testbed.Entry) error) error {
	o, err := f.h.open(context.Background(), "/walk", fileCall{Path: dir}, &none{}, nil)
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
	return askOr(f.h, "/attributes", fileCall{Path: dir}, false)
}
