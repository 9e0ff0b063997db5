package fanout

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// contentFile is a content's file, in a directory of its own named by the ref.
const contentFile = "content"

// content is what a node has of one ref, and its download.
type content struct {
	ref  string
	dir  string
	task task // its peers are the node's to write

	transport *http.Transport
	received  atomic.Int64
	sent      atomic.Int64
	peers     atomic.Int32
	ctx       context.Context // of the download
	cancel    context.CancelFunc
	wg        sync.WaitGroup

	mu       sync.Mutex
	checked  bool // what was on disk at the beginning
	good     []bool
	missing  int
	verified int64
	sources  []string
	more     chan struct{}     // a source was added
	trouble  map[string]string // by the source
}

func newContent(dir string, t task) *content {
	c := &content{
		ref: t.Manifest.ref(), dir: dir, task: t, transport: newTransport(),
		good: make([]bool, t.Manifest.blocks()), missing: t.Manifest.blocks(),
		more: make(chan struct{}, 1), trouble: map[string]string{},
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

func (c *content) path() string { return filepath.Join(c.dir, contentFile) }

// hasAll notes that the whole content has been written and checked.
func (c *content) hasAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.good {
		c.good[i] = true
	}
	c.missing, c.verified, c.checked = 0, c.task.Manifest.Size, true
}

// stop ends the download and waits for its end.
func (c *content) stop() {
	c.cancel()
	c.wg.Wait()
	c.transport.CloseIdleConnections()
}

// begin checks what is on disk, and downloads the rest.
func (c *content) begin() {
	c.wg.Go(func() {
		err := c.check()
		c.mu.Lock()
		c.checked = true
		if err != nil {
			c.trouble[""] = err.Error()
		}
		c.mu.Unlock()
		c.download()
	})
}

// check reads what is on disk.
func (c *content) check() error {
	f, err := os.Open(c.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, block)
	for i := range c.good {
		if c.ctx.Err() != nil {
			return nil
		}
		off, n := c.task.Manifest.at(i)
		if _, err := f.ReadAt(buf[:n], off); err == io.EOF {
			return nil // it ends here; holes are zeros
		} else if err != nil {
			return err
		}
		if c.task.Manifest.fits(i, buf[:n]) {
			c.have(i)
		}
	}
	return nil
}

// have notes a good block that is in the file.
func (c *content) have(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.good[i] = true
	c.missing--
	_, n := c.task.Manifest.at(i)
	c.verified += n
}

// add names more seeders to download from.
func (c *content) add(from []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sources = member.Merge(c.sources, from)
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// next are the first run of blocks that are missing, and the source whose turn it is.
func (c *content) next(turn int) (from string, first, end int, sources int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sources = len(c.sources); sources > 0 {
		from = c.sources[turn%sources]
	}
	if first = slices.Index(c.good, false); first < 0 {
		return from, 0, 0, sources
	}
	for end = first; end < len(c.good) && !c.good[end]; end++ {
	}
	return from, first, end, sources
}

// fetched is how far the node is.
func (c *content) progress() system.Progress {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := system.Progress{
		Size: c.task.Manifest.Size, Verified: c.verified, Written: c.verified, Complete: c.missing == 0,
		Received: c.received.Load(), Sent: c.sent.Load(), Peers: int(c.peers.Load()),
	}
	switch {
	case f.Complete:
	case !c.checked:
		f.Trouble = "checking what is on disk"
	case len(c.sources) == 0:
		f.Trouble = "it knows no seeder"
	case f.Peers == 0:
		for _, a := range slices.Concat([]string{""}, c.sources) {
			if why := c.trouble[a]; why != "" {
				f.Trouble = why
				break
			}
		}
	}
	return f
}
