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
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

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
