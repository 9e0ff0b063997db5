package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// How often a request is repeated that brought nothing, and the first pause before that.
const (
	tries = 3
	pause = 300 * time.Millisecond
)

// download brings the layers of an image into files, and goes on with those that an
// earlier attempt left there. The remote package of go-containerregistry asks for no ranges.
type download struct {
	ctx    context.Context
	dir    string
	repo   name.Repository
	base   http.RoundTripper
	client *http.Client // with the user's credentials, once it is needed
	say    Progress
	done   int64 // of the layers before
	total  int64
}

// errCut is that of a download with which the next attempt goes on.
var errCut = errors.New("cut off; the next attempt goes on from what has come")

// resumable is an image whose layers are downloaded so.
type resumable struct {
	v1.Image
	*download
}

func (r resumable) Layers() ([]v1.Layer, error) {
	layers, err := r.Image.Layers()
	for n, l := range layers {
		if err == nil {
			layers[n], err = partial.CompressedToLayer(filed{l, r.download})
		}
	}
	return layers, err
}

type filed struct {
	v1.Layer
	*download
}

// Compressed implements partial.CompressedLayer.
func (f filed) Compressed() (io.ReadCloser, error) {
	digest, err := f.Digest()
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(f.dir, digest.Hex), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	err = f.whole(file, digest, size)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	f.done += size
	return file, nil
}

// whole completes the file of a blob and verifies it. What an earlier attempt left may be
// damaged: then all is asked for again.
func (d *download) whole(file *os.File, digest v1.Hash, size int64) error {
	at, err := d.here(file)
	if err != nil {
		return err
	}
	resumed, most := at > 0, at
	for failed := 0; at < size; {
		err := d.rest(file, digest, at, size)
		var here error
		if at, here = d.here(file); here != nil {
			return errors.Join(err, here)
		}
		if err == nil {
			break
		}
		if failed++; at > most {
			failed, most = 0, at
		}
		var status *transport.Error
		if errors.As(err, &status) && !status.Temporary() || errors.Is(err, syscall.ENOSPC) {
			return err
		}
		if failed == tries {
			return fmt.Errorf("%w, %d of %d bytes of %s: %w", errCut, at, size, digest, err)
		}
		select {
		case <-d.ctx.Done():
			return context.Cause(d.ctx)
		case <-time.After(pause << failed):
		}
	}
	sum, err := v1.Hasher(digest.Algorithm)
	if err == nil {
		_, err = io.Copy(sum, io.NewSectionReader(file, 0, max(at, size)))
	}
	if err != nil {
		return err
	}
	got := fmt.Sprintf("%x", sum.Sum(nil))
	switch {
	case got == digest.Hex:
		return nil
	case resumed:
		if err := file.Truncate(0); err != nil {
			return err
		}
		return d.whole(file, digest, size)
	}
	return fmt.Errorf("wrong digest: the layer is %s:%s, not %s", digest.Algorithm, got, digest)
}

// here is how many bytes a file has; they count as progress.
func (d *download) here(file *os.File) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	if d.say != nil {
		d.say(d.done+info.Size(), d.total)
	}
	return info.Size(), nil
}

// rest appends what a blob has from a byte on. A registry without ranges sends all.
func (d *download) rest(file *os.File, digest v1.Hash, at, size int64) error {
	if err := d.login(); err != nil {
		return err
	}
	u := url.URL{Scheme: d.repo.Scheme(), Host: d.repo.RegistryStr(),
		Path: fmt.Sprintf("/v2/%s/blobs/%s", d.repo.RepositoryStr(), digest)}
	r, err := http.NewRequestWithContext(d.ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	if at > 0 {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", at, size-1))
	}
	resp, err := d.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	err = transport.CheckError(resp, http.StatusOK, http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable)
	if err != nil {
		return err
	}
	fits := resp.StatusCode == http.StatusPartialContent &&
		strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", at))
	if !fits {
		if err := file.Truncate(0); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("asked for the bytes from %d on, and got %s, %q",
				at, resp.Status, resp.Header.Get("Content-Range"))
		}
		at = 0
	}
	// One byte more, so that too many are wrong.
	n, err := io.Copy(counted{file, d}, io.LimitReader(resp.Body, size-at+1))
	if err == nil && at+n < size {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// login makes the client, which answers what the registry asks for with the user's
// credentials.
func (d *download) login() error {
	if d.client != nil {
		return nil
	}
	auth, err := authn.Resolve(d.ctx, authn.DefaultKeychain, d.repo)
	if err != nil {
		return err
	}
	t, err := transport.NewWithContext(d.ctx, d.repo.Registry, auth, transport.NewUserAgent(d.base, userAgent),
		[]string{d.repo.Scope(transport.PullScope)})
	if err == nil {
		d.client = &http.Client{Transport: t}
	}
	return err
}

// counted says after each write how far it is.
type counted struct {
	file *os.File
	d    *download
}

func (c counted) Write(p []byte) (int, error) {
	n, err := c.file.Write(p)
	if err == nil {
		_, err = c.d.here(c.file)
	}
	return n, err
}
