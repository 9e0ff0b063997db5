package sftp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/pkg/sftp"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/sshd"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// These decide the speed of a transfer: the maximum number of requests in flight and the bytes of
// each, a size that every server accepts.
const (
	inFlight = 64
	packet   = 32 << 10
)

// node is a directory on a server.
type node struct {
	login  sshd.Login
	client testbed.Host
	dir    string
	pool   *pool
	server *sshd.Server // nil: attached
	// begins the names of objects that an attached node stores: it changes no others; empty: it stores none
	mark string
}

func newNode(login sshd.Login, client testbed.Host, dir string) *node {
	n := &node{login: login, client: client, dir: dir}
	n.pool = newPool(n.open)
	return n
}

func (n *node) open(ctx context.Context) (*sshd.Session, error) {
	return n.login.Open(ctx, n.client.Dial,
		sftp.MaxPacketUnchecked(packet), sftp.MaxConcurrentRequestsPerFile(inFlight), sftp.UseConcurrentWrites(true),
		sftp.UseFstat(true)) // stat the open file, even if its name changes
}

// on calls do with a session that is aborted when ctx ends. what begins its errors.
func (n *node) on(ctx context.Context, what string, do func(*sshd.Session) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("sftp: %s: %w", what, err)
	}
	s, err := n.pool.take(ctx)
	if err != nil {
		return n.explain(ctx, what, err)
	}
	stop := context.AfterFunc(ctx, s.Abort)
	err = do(s)
	if !stop() || errors.Is(err, sftp.ErrSSHFxConnectionLost) {
		s.Abort()
	}
	n.pool.give(s)
	return n.explain(ctx, what, err)
}

func (n *node) explain(ctx context.Context, what string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("sftp: %s: %w (%v)", what, context.Cause(ctx), err)
	case n.pool.why() != nil:
		return fmt.Errorf("sftp: %s: %w", what, n.pool.why())
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("sftp: %s: %w: %w", what, err, system.ErrNotFound)
	}
	return fmt.Errorf("sftp: %s: %w", what, err)
}

// path returns the path of an object on the server.
func (n *node) path(ref system.Ref) (string, error) {
	if err := disk.Valid(string(ref)); err != nil {
		return "", fmt.Errorf("sftp: %w: %w", err, system.ErrBadRef)
	}
	return path.Join(n.dir, string(ref)), nil
}

// Put implements system.Store. The file is written under its own name, as SFTP clients do; a
// partial file of a failed put is removed.
func (n *node) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	ref := n.Named(name)
	if n.server == nil && n.mark == "" {
		return "", fmt.Errorf("sftp: put %s: %w", ref, system.ErrNotAllowed)
	}
	if err := n.store(ctx, "put", ref, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, size, r); err != nil {
		return "", err
	}
	return ref, nil
}

// Named implements system.Namer.
func (n *node) Named(name string) system.Ref { return system.Ref(n.mark + disk.FileName(name)) }

func (n *node) nameOf(file string) string { return disk.Name(strings.TrimPrefix(file, n.mark)) }

// Update implements system.Updater. It truncates and overwrites the file in place, as SFTP clients
// do.
func (n *node) Update(ctx context.Context, ref system.Ref, size int64, r io.Reader) error {
	if err := n.mayChange("update", ref); err != nil {
		return err
	}
	return n.store(ctx, "update", ref, os.O_WRONLY|os.O_TRUNC, size, r)
}

func (n *node) store(ctx context.Context, how string, ref system.Ref, flags int, size int64, r io.Reader) error {
	p, err := n.path(ref)
	if err != nil {
		return err
	}
	what := how + " " + string(ref)
	body, err := web.Exactly(r, size)
	if err != nil {
		return fmt.Errorf("sftp: %s: %w", what, err)
	}
	// A reader that fails at once must not cost the file its content.
	first := make([]byte, min(int64(packet), size))
	if _, err := io.ReadFull(body, first); err != nil {
		return fmt.Errorf("sftp: %s: %w", what, err)
	}
	return n.on(ctx, what, func(s *sshd.Session) error {
		f, err := s.OpenFile(p, flags)
		if err != nil {
			return err
		}
		// ReadFrom does not know the size and would make one request after another.
		_, err = f.ReadFromWithConcurrency(io.MultiReader(bytes.NewReader(first), body), inFlight)
		if err = cmp.Or(err, f.Close()); err == nil {
			return nil
		}
		if full(s, n.dir, err) {
			err = fmt.Errorf("%w: %w", err, system.ErrQuota)
		}
		if flags&os.O_CREATE != 0 && s.Alive() {
			_ = s.Remove(p) // the first error counts
		}
		return err
	})
}

// full reports whether a server that refused a write is out of space. SFTP has no status for that:
// OpenSSH returns "Failure".
func full(s *sshd.Session, dir string, err error) bool {
	var status *sftp.StatusError
	if !errors.As(err, &status) || !s.Alive() {
		return false
	}
	fs, err := s.StatVFS(dir)
	return err == nil && (fs.Bavail == 0 || fs.Favail == 0 && fs.Files > 0)
}

// Get implements system.Getter.
func (n *node) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	return n.read(ctx, "get", ref, func(f *sftp.File) error {
		_, err := f.WriteTo(w)
		return err
	})
}

func (n *node) read(ctx context.Context, how string, ref system.Ref, do func(*sftp.File) error) error {
	p, err := n.path(ref)
	if err != nil {
		return err
	}
	return n.on(ctx, how+" "+string(ref), func(s *sshd.Session) error {
		f, err := s.Open(p)
		if err != nil {
			return err
		}
		err = do(f)
		return cmp.Or(err, f.Close())
	})
}

// GetRange implements system.Ranger. It requests the range in pieces of as many bytes as may be in
// flight.
func (n *node) GetRange(ctx context.Context, ref system.Ref, off, count int64, w io.Writer) error {
	if count == 0 {
		_, err := n.path(ref)
		return err
	}
	return n.read(ctx, "range of", ref, func(f *sftp.File) error {
		buf := make([]byte, min(count, int64(inFlight*packet)))
		got, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{io.NewSectionReader(f, off, count)}, buf)
		if err == nil && got < count {
			err = fmt.Errorf("the object ends after %d of %d bytes: %w", got, count, io.ErrUnexpectedEOF)
		}
		return err
	})
}

// Stat implements system.Stater.
func (n *node) Stat(ctx context.Context, ref system.Ref) (system.Object, error) {
	o := system.Object{Name: n.nameOf(string(ref)), Ref: ref, Size: -1}
	p, err := n.path(ref)
	if err != nil {
		return o, err
	}
	err = n.on(ctx, "stat "+string(ref), func(s *sshd.Session) error {
		info, err := s.Stat(p)
		if err == nil {
			o.Size = info.Size()
		}
		return err
	})
	return o, err
}

// Delete implements system.Deleter. On an attached server it deletes only objects of this run.
func (n *node) Delete(ctx context.Context, ref system.Ref) error {
	p, err := n.path(ref)
	if err != nil {
		return err
	}
	if err := n.mayChange("delete", ref); err != nil {
		return err
	}
	return n.on(ctx, "delete "+string(ref), func(s *sshd.Session) error { return s.Remove(p) })
}

// mayChange returns an error for foreign objects on an attached server.
func (n *node) mayChange(what string, ref system.Ref) error {
	if n.server == nil && (n.mark == "" || !strings.HasPrefix(string(ref), n.mark)) {
		return fmt.Errorf("sftp: %s %s: it is not ours: %w", what, ref, system.ErrReadOnly)
	}
	return nil
}

// List implements system.Lister. In a writable attached directory, it lists only the objects of
// this run.
func (n *node) List(ctx context.Context, visit func(system.Object) error) error {
	return n.on(ctx, "list "+n.dir, func(s *sshd.Session) error {
		entries, err := s.ReadDirContext(ctx, n.dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), n.mark) || disk.Valid(e.Name()) != nil || n.server != nil &&
				e.Name() == disk.Probe || !e.Mode().IsRegular() {
				continue
			}
			o := system.Object{Name: n.nameOf(e.Name()), Ref: system.Ref(e.Name()), Size: e.Size()}
			if err := visit(o); err != nil {
				return err
			}
		}
		return nil
	})
}

// Redial implements system.Redialer.
func (n *node) Redial(context.Context) error {
	n.pool.redial()
	return nil
}

// Health implements system.Healther over a new connection: it checks the probe of a started server,
// or the directory of an attached one.
func (n *node) Health(ctx context.Context) error {
	if n.server != nil {
		return n.server.Health(ctx)
	}
	s, err := n.open(ctx)
	if err != nil {
		return fmt.Errorf("sftp: health probe: %w", err)
	}
	defer s.Abort()
	defer context.AfterFunc(ctx, s.Abort)()
	if _, err := s.Stat(n.dir); err != nil {
		return n.explain(ctx, "health probe: "+n.dir, err)
	}
	return nil
}

// Processes implements system.Node.
func (n *node) Processes() []testbed.Process {
	if n.server == nil {
		return nil
	}
	return n.server.Processes()
}

// Endpoints implements system.Endpointer.
func (n *node) Endpoints() []string { return []string{n.login.Address} }

// Stop implements group.Node.
func (n *node) Stop(ctx context.Context) error {
	n.pool.close(errors.New("stopped"))
	if n.server == nil {
		return nil
	}
	return n.server.Stop(ctx)
}

// pool keeps sessions between operations. Each operation has its own session, so that an aborted
// operation does not affect others.
type pool struct {
	open  func(ctx context.Context) (*sshd.Session, error)
	ctx   context.Context         // ends when the pool is closed
	close context.CancelCauseFunc // ends all sessions for good, including those in use

	mu    sync.Mutex
	idle  []*sshd.Session
	armed int // number of operations that must open a new connection
}

func newPool(open func(ctx context.Context) (*sshd.Session, error)) *pool {
	p := &pool{open: open}
	p.ctx, p.close = context.WithCancelCause(context.Background())
	return p
}

// take returns an idle session or opens a new one.
func (p *pool) take(ctx context.Context) (*sshd.Session, error) {
	if err := p.why(); err != nil {
		return nil, err
	}
	if s := p.reuse(); s != nil {
		return s, nil
	}
	s, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(p.ctx, s.Abort)
	context.AfterFunc(s.Life, func() { stop() })
	return s, nil
}

// reuse returns an idle session, or nil if a new one must be opened.
func (p *pool) reuse() *sshd.Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.armed > 0 {
		p.armed--
		return nil
	}
	for len(p.idle) > 0 {
		s := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if s.Alive() {
			return s
		}
	}
	return nil
}

// give returns a session to the pool.
func (p *pool) give(s *sshd.Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Alive() {
		p.idle = append(p.idle, s)
	}
}

// redial makes one operation per call open a new connection, even if others are running. It closes
// the idle sessions.
func (p *pool) redial() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed++
	for _, s := range p.idle {
		s.Abort()
	}
	p.idle = nil
}

// why returns the reason why the pool was closed, or nil.
func (p *pool) why() error { return context.Cause(p.ctx) }
