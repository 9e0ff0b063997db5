package fanout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	dialTimeout = 5 * time.Second
	// silence is how long a connection may bring no byte before it is given up.
	silence = 10 * time.Second
	// The pause after a failure doubles from the first to the last.
	firstPause = 100 * time.Millisecond
	lastPause  = 2 * time.Second
)

var errSilent = fmt.Errorf("no byte in %v", silence)

// newTransport is that of one content: its connections are begun by its
// download, so that none comes with the window of an earlier one.
func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		ResponseHeaderTimeout: silence,
		DisableCompression:    true,
		MaxIdleConnsPerHost:   1,
	}
}

// download gets what is missing from one source, in one request, and from the
// next when that one fails. It pauses when all have failed.
func (c *content) download() {
	defer c.transport.CloseIdleConnections()
	pause, failed := firstPause, 0
	for turn := 0; c.ctx.Err() == nil; {
		from, first, end, sources := c.next(turn)
		switch {
		case first == end: // all is there
			return
		case sources == 0:
			c.wait(lastPause)
			continue
		}
		before := c.received.Load()
		err := c.get(from, first, end)
		if c.received.Load() > before {
			pause = firstPause
		}
		if err == nil {
			failed = 0
			continue
		}
		c.mu.Lock()
		c.trouble[from] = err.Error()
		c.mu.Unlock()
		turn++
		if failed++; failed >= sources {
			c.wait(pause)
			pause, failed = min(2*pause, lastPause), 0
		}
	}
}

// wait is a pause that a new source ends.
func (c *content) wait(pause time.Duration) {
	select {
	case <-c.ctx.Done():
	case <-c.more:
	case <-time.After(pause):
	}
}

// get asks for a run of blocks and writes them as they come and are found good.
func (c *content) get(from string, begin, end int) error {
	first, _ := c.task.Manifest.at(begin)
	off, n := c.task.Manifest.at(end - 1)
	last := off + n - 1
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(nil)
	watch := time.AfterFunc(dialTimeout+silence, func() { cancel(errSilent) })
	defer watch.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+from+contentPath+c.ref, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", first, last))
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	defer resp.Body.Close()
	want := fmt.Sprintf("bytes %d-%d/%d", first, last, c.task.Manifest.Size)
	if got := resp.Header.Get("Content-Range"); resp.StatusCode != http.StatusPartialContent || got != want {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
		return fmt.Errorf("%s: asked for %s, it answered %s with %q: %s", from, want, strconv.Itoa(resp.StatusCode), got, strings.TrimSpace(string(said)))
	}
	c.peers.Add(1)
	defer c.peers.Add(-1)
	f, err := os.OpenFile(c.path(), os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	body := &counted{r: resp.Body, c: c, heard: func() { watch.Reset(silence) }}
	buf := make([]byte, block)
	for i := begin; i < end; i++ {
		off, n := c.task.Manifest.at(i)
		if _, err := io.ReadFull(body, buf[:n]); err != nil {
			if why := context.Cause(ctx); why != nil {
				err = why
			}
			return fmt.Errorf("%s: after %d bytes: %w", from, body.n, err)
		}
		if !c.task.Manifest.fits(i, buf[:n]) {
			return fmt.Errorf("%s: %d bytes at %d are not those that were published", from, n, off)
		}
		if _, err := f.WriteAt(buf[:n], off); err != nil {
			return err
		}
		c.have(i)
	}
	// What ends as it was asked for leaves a connection for the next request.
	if _, err := body.Read(buf[:1]); err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		return fmt.Errorf("%s: after %d bytes: %w", from, body.n, err)
	}
	return f.Close()
}

// counted counts what comes.
type counted struct {
	r     io.Reader
	c     *content
	n     int64
	heard func()
}

func (r *counted) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if n > 0 {
		r.n += int64(n)
		r.c.received.Add(int64(n))
		r.heard()
	}
	return n, err
}
