package fanout

import (
	"context"
	"encoding/json"
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
)

// content is what a node has of one ref, and its download.
type content struct {
	ref  string
	dir  string
	self string
	task task // From and the file of the task are the peer's to write

	transport *http.Transport
	turn      chan struct{} // a download is under way; nil: any number may be
	received  atomic.Int64
	sent      atomic.Int64
	peers     atomic.Int32
	cancel    context.CancelFunc
	ctx       context.Context // of the downloads
	wg        sync.WaitGroup

	mu       sync.Mutex
	checked  bool // what was on disk at the beginning
	good     []bool
	missing  int
	verified int64
	spans    []*span       // what is being downloaded
	seekers  int           // downloads that look for a span
	changed  chan struct{} // closed when spans or good have changed
	sources  []string
	trouble  map[string]string // by the source
}

func newContent(dir string, t task, self string, all bool) *content {
	c := &content{
		ref: t.Manifest.ref(), dir: dir, self: self, task: t, transport: newTransport(),
		good: make([]bool, t.Manifest.blocks()), missing: t.Manifest.blocks(),
		changed: make(chan struct{}), trouble: map[string]string{},
	}
	if !all {
		c.turn = make(chan struct{}, 1)
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

func (c *content) path(file string) string { return filepath.Join(c.dir, file) }

// save writes the task, whole or not at all.
func (c *content) save() error {
	b, err := json.Marshal(c.task)
	if err != nil {
		return err
	}
	temporary := c.path(".new-" + taskFile)
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(temporary, b, 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, c.path(taskFile))
}

// hasAll notes that the whole content has been written and checked.
func (c *content) hasAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.good {
		c.good[i] = true
	}
	c.missing, c.verified, c.checked = 0, c.task.Manifest.Size, true
}

// stop ends the downloads and waits for their end.
func (c *content) stop() {
	c.cancel()
	c.wg.Wait()
	c.transport.CloseIdleConnections()
}

// serves says whether others get the content here: what was fetched is not
// passed on.
func (c *content) serves() bool { return c.task.Published }

// begin checks what is on disk, and downloads the rest.
func (c *content) begin(from []string) {
	c.wg.Go(func() {
		err := c.check()
		c.mu.Lock()
		c.checked = true
		if err != nil {
			c.trouble[""] = err.Error()
		}
		c.mu.Unlock()
		c.more(from)
	})
}

// check reads what is on disk.
func (c *content) check() error {
	f, err := os.Open(c.path(contentFile))
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
	if c.good[i] {
		return
	}
	c.good[i] = true
	c.missing--
	_, n := c.task.Manifest.at(i)
	c.verified += n
	if c.missing == 0 {
		c.change()
	}
}

// change wakes those who wait. The lock is the caller's.
func (c *content) change() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// more adds seeders to download from.
func (c *content) more(from []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.checked || c.ctx.Err() != nil {
		return
	}
	for _, a := range from {
		if a == c.self || slices.Contains(c.sources, a) {
			continue
		}
		c.sources = append(c.sources, a)
		c.seekers++
		first := c.turn != nil && len(c.sources) == 1
		if first {
			c.turn <- struct{}{} // in the order in which they were given
		}
		c.wg.Go(func() { c.download(a, first) })
	}
}

// fetched implements the answer of system.Member.
func (c *content) fetched() system.Progress {
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
		f.Trouble = "told of no seeder"
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
