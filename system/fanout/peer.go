package fanout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// node stores and fetches contents.
type node struct {
	member.Contents
	backend *backend
}

// backend manages the node's files.
type backend struct {
	dir            string
	received, sent atomic.Int64
	peers          atomic.Int32

	mu   sync.Mutex
	said map[system.Ref]manifest
	ours map[system.Ref]bool // published here
}

func newNode(dir string) *node {
	b := &backend{dir: dir, said: map[system.Ref]manifest{}, ours: map[system.Ref]bool{}}
	return &node{backend: b, Contents: member.Contents{Backend: b, Name: name, Title: dir, Redial: time.Hour,
		Ref: checkRef, Runs: func() error { return nil }}}
}

// Serve implements system.Embedded: the node of `plimsoll node fanout`.
func (System) Serve(ctx context.Context, args []string, stdout, _ io.Writer) error {
	var c member.Config
	if err := member.Configure(args, &c); err != nil {
		return err
	}
	n := newNode(c.Dir)
	defer n.Pause()
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return fmt.Errorf("fanout: %w", err)
	}
	return member.Serve(ctx, name, stdout,
		member.Server{What: "contents", Address: c.Listen, Handler: n.contentServer()},
		member.Server{What: "control", Address: c.Control, Handler: member.Handler(n)})
}

func (b *backend) path(ref system.Ref) string { return filepath.Join(b.dir, string(ref), "content") }

// about returns the manifest of a content.
func (b *backend) about(ref system.Ref) manifest {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.said[ref]
}

// know records the manifest of a content.
func (b *backend) know(m manifest, ours bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said[m.ref()], b.ours[m.ref()] = m, ours || b.ours[m.ref()]
	return os.MkdirAll(filepath.Dir(b.path(m.ref())), 0o755)
}

// Fetch implements member.Node.
func (n *node) Fetch(ctx context.Context, ref system.Ref, t member.Task) error {
	if is := manifest(t.Metadata).ref(); is != ref {
		return fmt.Errorf("the manifest is that of %s, not of %s", is, ref)
	}
	if err := n.backend.know(t.Metadata, t.Published); err != nil {
		return err
	}
	return n.Contents.Fetch(ctx, ref, t.From)
}

// Publish implements member.Node.
func (n *node) Publish(ctx context.Context, title string, size int64, r io.Reader) (system.Ref, []byte, error) {
	ref, err := n.Contents.Publish(ctx, title, size, r)
	return ref, n.backend.about(ref), err
}

// Store implements member.Backend: it writes the content to this node's disk, hashes it meanwhile,
// and serves it.
func (b *backend) Store(ctx context.Context, _ string, size int64, r io.Reader) (system.Ref, error) {
	m := newManifest(size)
	file, err := member.Receive(ctx, b.dir, size, block, r, m.add)
	if err != nil {
		return "", err
	}
	defer os.Remove(file) // fails after the rename, which is fine
	if err := b.know(m, true); err != nil {
		return "", err
	}
	return m.ref(), os.Rename(file, b.path(m.ref()))
}

// Count implements member.Backend.
func (b *backend) Count(context.Context) (member.Counts, error) {
	return member.Counts{Received: b.received.Load(), Sent: b.sent.Load(), Held: -1, Peers: int(b.peers.Load())}, nil
}

// Apart implements member.Backend: each download makes its own connection.
func (b *backend) Apart(context.Context, []string) ([]string, error) { return nil, nil }

// Connect implements member.Backend.
func (b *backend) Connect(context.Context, string) error { return nil }

// Part implements member.Backend.
func (b *backend) Part(context.Context) error { return nil }

// ReadBack implements member.Node with the file on disk.
func (n *node) ReadBack(w http.ResponseWriter, r *http.Request, ref system.Ref) error {
	if _, err := n.Progress(r.Context(), ref); err != nil {
		return err
	}
	return member.ServeFile(w, r, n.backend.path(ref))
}

// Remove implements member.Backend.
func (b *backend) Remove(_ context.Context, ref system.Ref) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.said, ref)
	delete(b.ours, ref)
	return os.RemoveAll(filepath.Dir(b.path(ref)))
}

// contentPath is the URL path at which other nodes get what this node published.
const contentPath = "/content/"

// swath is the number of bytes after which the sent bytes are counted.
const swath = 1 << 20

// contentServer serves what this node published, but nothing that it fetched.
func (n *node) contentServer() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+contentPath+"{ref}", member.Answer(func(w http.ResponseWriter, r *http.Request) error {
		ref, b := system.Ref(r.PathValue("ref")), n.backend
		b.mu.Lock()
		ours := b.ours[ref]
		b.mu.Unlock()
		if !ours {
			return fmt.Errorf("%s was not published here: %w", ref, system.ErrNotFound)
		}
		b.peers.Add(1)
		defer b.peers.Add(-1)
		return member.ServeFile(&sender{w, &b.sent}, r, b.path(ref))
	}))
	return mux
}

// sender counts the bytes of a body while sending it. It passes the reader on in parts, so files
// are still sent with sendfile.
type sender struct {
	http.ResponseWriter
	sent *atomic.Int64
}

// ReadFrom implements io.ReaderFrom, which ServeContent's copy calls.
func (s *sender) ReadFrom(r io.Reader) (done int64, err error) {
	whole, ok := r.(*io.LimitedReader)
	if !ok {
		return 0, fmt.Errorf("fanout: a body is read from %T", r)
	}
	for whole.N > 0 {
		part := min(whole.N, swath)
		n, err := io.CopyN(s.ResponseWriter, whole.R, part)
		done += n
		whole.N -= n
		s.sent.Add(n)
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

const (
	dialTimeout = 5 * time.Second
	// silence is how long a connection may deliver no byte before it is abandoned.
	silence = 10 * time.Second
	// pause is the time between two rounds over all sources.
	pause = 500 * time.Millisecond
)

// download is a content being downloaded.
type download struct {
	*backend
	*member.Content
	manifest
	transport *http.Transport
	next      int // number of the next block; all before it are in the file and verified
}

// Fetch implements member.Backend. It gets the missing part from one source, in one request, and
// continues with the next source if that fails. It pauses after each round. It uses its own
// connections, so that none starts with the TCP window of an earlier content.
func (b *backend) Fetch(ctx context.Context, c *member.Content) error {
	d := &download{backend: b, Content: c, manifest: b.about(c.Ref), transport: &http.Transport{
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		ResponseHeaderTimeout: silence, DisableCompression: true, MaxIdleConnsPerHost: 1,
	}}
	defer d.transport.CloseIdleConnections()
	d.SetSize(d.size(), 0)
	if err := d.check(ctx); err != nil {
		return err
	}
	for turn := 0; d.next < d.blocks(); {
		sources := d.State().From
		if len(sources) > 0 {
			err := d.get(ctx, sources[turn%len(sources)])
			if err == nil {
				continue
			}
			d.SetTrouble(err)
			turn++
		}
		if (len(sources) == 0 || turn%len(sources) == 0) && !timing.Pause(ctx, pause) {
			return ctx.Err()
		}
	}
	return nil
}

// have records that the next block is verified and in the file.
func (d *download) have() {
	off, n := d.at(d.next)
	d.next++
	d.Blocks(off + n)
}

// check verifies what an earlier process left on disk, up to the first bad block.
func (d *download) check(ctx context.Context) error {
	f, err := os.Open(d.path(d.Ref))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, block)
	for d.next < d.blocks() && ctx.Err() == nil {
		off, n := d.at(d.next)
		if _, err := f.ReadAt(buf[:n], off); err != nil && err != io.EOF {
			return err
		} else if err == io.EOF || !d.fits(d.next, buf[:n]) {
			return nil
		}
		d.have()
	}
	return nil
}

// get requests the missing blocks, and verifies and writes them as they arrive.
func (d *download) get(ctx context.Context, from string) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(dialTimeout+silence, func() { cancel(fmt.Errorf("no byte in %v", silence)) })
	defer watch.Stop()
	defer func() {
		if why := context.Cause(ctx); err != nil && why != nil {
			err = why
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", from, err)
		}
	}()
	body, err := d.open(ctx, from)
	if err != nil {
		return err
	}
	defer body.Close()
	d.peers.Add(1)
	defer d.peers.Add(-1)
	f, err := os.OpenFile(d.path(d.Ref), os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	r := &counted{body, func(n int) { d.received.Add(int64(n)); watch.Reset(silence) }}
	buf := make([]byte, block)
	for d.next < d.blocks() {
		off, n := d.at(d.next)
		if _, err := io.ReadFull(r, buf[:n]); err != nil {
			return fmt.Errorf("the bytes at %d: %w", off, err)
		}
		if !d.fits(d.next, buf[:n]) {
			return fmt.Errorf("%d bytes at %d are not those that were published", n, off)
		}
		if _, err := f.WriteAt(buf[:n], off); err != nil {
			return err
		}
		d.have()
	}
	// An answer that is read to its end leaves its connection for the next request.
	if _, err := r.Read(buf[:1]); err != io.EOF {
		return fmt.Errorf("after all bytes: %w", err)
	}
	return f.Close()
}

// open requests the missing blocks from a source.
func (d *download) open(ctx context.Context, from string) (io.ReadCloser, error) {
	first, _ := d.at(d.next)
	run := fmt.Sprintf("%d-%d", first, d.size()-1)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+from+contentPath+string(d.Ref), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Range", "bytes="+run)
	resp, err := d.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	want := fmt.Sprintf("bytes %s/%d", run, d.size())
	if got := resp.Header.Get("Content-Range"); resp.StatusCode != http.StatusPartialContent || got != want {
		defer resp.Body.Close()
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
		return nil, fmt.Errorf("asked for %s, it answered %s with %q: %s", want, resp.Status, got,
			strings.TrimSpace(string(said)))
	}
	return resp.Body, nil
}

// counted reports the bytes received.
type counted struct {
	r     io.Reader
	heard func(n int)
}

func (r *counted) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if n > 0 {
		r.heard(n)
	}
	return n, err
}
