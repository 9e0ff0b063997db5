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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

const (
	dialTimeout = 5 * time.Second
	// silence is how long a connection may bring no byte before it is given up.
	silence = 10 * time.Second
	// pause comes after a round over all sources.
	pause = 500 * time.Millisecond
)

// content is what a node has of one ref, and its download.
type content struct {
	member.Background
	ref  string
	dir  string
	said manifest
	ours bool // published here

	received, sent atomic.Int64
	peers          atomic.Int32

	mu       sync.Mutex
	good     []bool
	verified int64
	sources  []string
	trouble  string
}

func (c *content) path() string { return filepath.Join(c.dir, "content") }

// have notes a good block that is in the file.
func (c *content) have(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, n := c.said.at(i)
	c.good[i], c.verified, c.trouble = true, c.verified+n, ""
}

// add names more seeders to download from.
func (c *content) add(from []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sources = member.Merge(c.sources, from)
}

func (c *content) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trouble = err.Error()
}

// next are the first run of blocks that are missing, and the sources.
func (c *content) next() (first, end int, sources []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if first = slices.Index(c.good, false); first < 0 {
		return 0, 0, nil
	}
	for end = first; end < len(c.good) && !c.good[end]; end++ {
	}
	return first, end, c.sources
}

// progress is how far the node is.
func (c *content) progress() system.Progress {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := c.said.Size
	f := system.Progress{
		Size: size, Verified: c.verified, Written: c.verified, Complete: c.verified == size,
		Received: c.received.Load(), Sent: c.sent.Load(), Peers: int(c.peers.Load()),
	}
	switch {
	case f.Complete || f.Peers > 0:
	case len(c.sources) == 0:
		f.Trouble = "it knows no seeder"
	default:
		f.Trouble = c.trouble
	}
	return f
}

// check reads what an earlier process left on disk.
func (c *content) check(ctx context.Context) error {
	f, err := os.Open(c.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, block)
	for i := 0; i < len(c.good) && ctx.Err() == nil; i++ {
		off, n := c.said.at(i)
		if _, err := f.ReadAt(buf[:n], off); err == io.EOF {
			return nil // it ends here; holes are zeros
		} else if err != nil {
			return err
		}
		if c.said.fits(i, buf[:n]) {
			c.have(i)
		}
	}
	return nil
}

// download gets what is missing from one source, in one request, and from the
// next when that one fails. It pauses after a round. Its connections are its
// own, so that none comes with the window of an earlier content.
func (c *content) download(ctx context.Context) {
	if err := c.check(ctx); err != nil {
		c.note(err)
	}
	transport := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		ResponseHeaderTimeout: silence, DisableCompression: true, MaxIdleConnsPerHost: 1,
	}
	defer transport.CloseIdleConnections()
	for turn := 0; ctx.Err() == nil; {
		first, end, sources := c.next()
		if first == end {
			return // all is there
		}
		if len(sources) > 0 {
			err := c.get(ctx, transport, sources[turn%len(sources)], first, end)
			if err == nil {
				continue
			}
			c.note(err)
			turn++
		}
		if len(sources) == 0 || turn%len(sources) == 0 {
			member.Sleep(ctx, pause)
		}
	}
}

// get asks for a run of blocks and writes them as they come and are found good.
func (c *content) get(ctx context.Context, transport *http.Transport, from string, begin, end int) (err error) {
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
	body, err := c.open(ctx, transport, from, begin, end)
	if err != nil {
		return err
	}
	defer body.Close()
	c.peers.Add(1)
	defer c.peers.Add(-1)
	f, err := os.OpenFile(c.path(), os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	r := &counted{body, func(n int) { c.received.Add(int64(n)); watch.Reset(silence) }}
	buf := make([]byte, block)
	for i := begin; i < end; i++ {
		off, n := c.said.at(i)
		if _, err := io.ReadFull(r, buf[:n]); err != nil {
			return fmt.Errorf("the bytes at %d: %w", off, err)
		}
		if !c.said.fits(i, buf[:n]) {
			return fmt.Errorf("%d bytes at %d are not those that were published", n, off)
		}
		if _, err := f.WriteAt(buf[:n], off); err != nil {
			return err
		}
		c.have(i)
	}
	// What ends as it was asked for leaves a connection for the next request.
	if _, err := r.Read(buf[:1]); err != io.EOF {
		return fmt.Errorf("after all bytes: %w", err)
	}
	return f.Close()
}

// open asks a source for a run of blocks.
func (c *content) open(
	ctx context.Context, transport *http.Transport, from string, begin, end int,
) (io.ReadCloser, error) {
	first, _ := c.said.at(begin)
	off, n := c.said.at(end - 1)
	run := fmt.Sprintf("%d-%d", first, off+n-1)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+from+contentPath+c.ref, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Range", "bytes="+run)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	want := fmt.Sprintf("bytes %s/%d", run, c.said.Size)
	if got := resp.Header.Get("Content-Range"); resp.StatusCode != http.StatusPartialContent || got != want {
		defer resp.Body.Close()
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
		return nil, fmt.Errorf("asked for %s, it answered %s with %q: %s", want, resp.Status, got,
			strings.TrimSpace(string(said)))
	}
	return resp.Body, nil
}

// counted counts the bytes that come.
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
