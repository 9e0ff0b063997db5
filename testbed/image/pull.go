package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// Progress is told how many bytes of how many have come; total is 0 until it is known.
type Progress func(done, total int64)

// Size is how many bytes pulling an image would transfer.
func (s Store) Size(ctx context.Context, reference string) (int64, error) {
	img, err := s.remote(ctx, reference, &meter{})
	if err != nil {
		return 0, explain(reference, err)
	}
	size, err := compressed(img)
	return size, explain(reference, err)
}

// Pull brings an image from its registry, with the user's own credentials for it, unless
// its manifest is that of one which is here.
func (s Store) Pull(ctx context.Context, reference string, say Progress) (Image, error) {
	m := &meter{say: say}
	img, err := s.remote(ctx, reference, m)
	if err != nil {
		return Image{}, explain(reference, err)
	}
	if m.total, err = compressed(img); err != nil {
		return Image{}, explain(reference, err)
	}
	return s.add(ctx, reference, img)
}

// Load takes an image from a file or directory instead: an OCI layout, or what `docker
// save` or `podman save` wrote.
func (s Store) Load(ctx context.Context, reference, from string) (Image, error) {
	img, err := open(from)
	if err != nil {
		return Image{}, fmt.Errorf("image %s: %s: %w", reference, from, err)
	}
	return s.add(ctx, reference, img)
}

func open(from string) (v1.Image, error) {
	info, err := os.Stat(from)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return tarball.ImageFromPath(from, nil)
	}
	index, err := layout.ImageIndexFromPath(from)
	if err != nil {
		return nil, fmt.Errorf("no OCI layout: %w", err)
	}
	return choose(index)
}

// choose is the image of an index for this machine.
func choose(index v1.ImageIndex) (v1.Image, error) {
	m, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, d := range m.Manifests {
		switch {
		case d.MediaType.IsIndex():
			inner, err := index.ImageIndex(d.Digest)
			if err != nil {
				return nil, err
			}
			return choose(inner)
		case d.MediaType.IsImage() && (d.Platform == nil || d.Platform.Satisfies(platform())):
			img, err := index.Image(d.Digest)
			if err != nil {
				return nil, err
			}
			raw, err := img.RawManifest()
			if err != nil {
				return nil, err
			}
			return img, matches("manifest", raw, d.Digest)
		}
	}
	return nil, fmt.Errorf("no image for %s", platform())
}

func platform() v1.Platform { return v1.Platform{OS: "linux", Architecture: runtime.GOARCH} }

// matches holds bytes to the digest that they were asked for by.
func matches(what string, b []byte, want v1.Hash) error {
	if got := sha256.Sum256(b); hex.EncodeToString(got[:]) != want.Hex {
		return fmt.Errorf("wrong digest: the %s is sha256:%x, not %s", what, got, want)
	}
	return nil
}

func (s Store) remote(ctx context.Context, reference string, m *meter) (v1.Image, error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return nil, err
	}
	base, ok := remote.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the transport is not HTTP")
	}
	base = base.Clone()
	base.ResponseHeaderTimeout = s.Stall
	m.base, m.stall = base, s.Stall
	return remote.Image(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithPlatform(platform()), remote.WithTransport(m), remote.WithUserAgent("plimsoll"),
		remote.WithRetryBackoff(remote.Backoff{Duration: 300 * time.Millisecond, Factor: 3, Steps: 3}))
}

func compressed(img v1.Image) (sum int64, err error) {
	m, err := img.Manifest()
	if err != nil {
		return 0, err
	}
	sum = m.Config.Size
	for _, l := range m.Layers {
		sum += l.Size
	}
	return sum, nil
}

// add unpacks an image that is not in the store and makes the reference stand for it. It
// is under its digest when it is whole; what an attempt that was killed left is removed by
// the next.
func (s Store) add(ctx context.Context, reference string, img v1.Image) (i Image, err error) {
	fail := func(err error) (Image, error) { return Image{}, explain(reference, err) }
	digest, err := img.Digest()
	if err != nil {
		return fail(err)
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return fail(err)
	}
	unlock, err := testbed.LockFile(filepath.Join(s.Dir, "lock"))
	if err != nil {
		return fail(err)
	}
	defer unlock()
	left, err := filepath.Glob(filepath.Join(s.Dir, "unpacking-*"))
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		return fail(err)
	}
	dir := filepath.Join(s.Dir, digest.Algorithm+"-"+digest.Hex)
	if i, err = read(dir); err != nil {
		if i, err = s.unpacked(ctx, reference, img, dir); err != nil {
			return fail(err)
		}
	}
	i.Reference = reference // it may be here by another name
	return i, s.point(reference, i)
}

// unpacked makes the directory of an image.
func (s Store) unpacked(ctx context.Context, reference string, img v1.Image, dir string) (i Image, err error) {
	manifest, err := img.Manifest()
	if err != nil {
		return i, err
	}
	raw, err := img.RawConfigFile()
	if err != nil {
		return i, err
	}
	if err := matches("configuration", raw, manifest.Config.Digest); err != nil {
		return i, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return i, err
	}
	digest, err := img.Digest()
	if err != nil {
		return i, err
	}
	if config.OS != "" && config.OS != "linux" || config.Architecture != "" && config.Architecture != runtime.GOARCH {
		return i, fmt.Errorf("it is for %s/%s, and this machine is %s", config.OS, config.Architecture, platform())
	}
	tmp, err := os.MkdirTemp(s.Dir, "unpacking-")
	if err != nil {
		return i, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(tmp))
		}
	}()
	err = errors.Join(os.Chmod(tmp, 0o755), os.Mkdir(filepath.Join(tmp, rootDir), 0o755), os.Mkdir(filepath.Join(tmp, mountDir), 0o755))
	if err != nil {
		return i, err
	}
	if err := unpack(ctx, img, filepath.Join(tmp, rootDir), s.Limit); err != nil {
		return i, err
	}
	i = Image{Reference: reference, Digest: digest.String(), Env: config.Config.Env, dir: dir}
	i.Entrypoint = slices.Concat(config.Config.Entrypoint, config.Config.Cmd)
	about, err := json.Marshal(i)
	if err != nil {
		return i, err
	}
	if err := os.WriteFile(filepath.Join(tmp, aboutFile), about, 0o644); err != nil {
		return i, err
	}
	if err := os.RemoveAll(dir); err != nil { // one that read could not read
		return i, err
	}
	return i, os.Rename(tmp, dir)
}

// meter is a transport that counts the bytes of bodies and gives up on one that stalls.
type meter struct {
	base  http.RoundTripper
	stall time.Duration
	say   Progress
	done  atomic.Int64
	total int64
}

// RoundTrip implements http.RoundTripper.
func (m *meter) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	resp, err := m.base.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel(err)
		return nil, err
	}
	stalled := time.AfterFunc(m.stall, func() { cancel(errStalled) })
	resp.Body = &meteredBody{resp.Body, m, ctx, stalled, cancel}
	return resp, nil
}

var errStalled = errors.New("the registry stopped sending")

type meteredBody struct {
	io.ReadCloser
	*meter
	ctx     context.Context
	stalled *time.Timer
	cancel  context.CancelCauseFunc
}

func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.stalled.Reset(b.stall)
	if done := b.done.Add(int64(n)); b.say != nil && n > 0 {
		b.say(done, b.total)
	}
	if err != nil && context.Cause(b.ctx) == errStalled {
		err = errStalled
	}
	return n, err
}

func (b *meteredBody) Close() error {
	b.stalled.Stop()
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

// explain names the image in an error, and says what a registry means by its status.
func explain(reference string, err error) error {
	if err == nil {
		return nil
	}
	host := "its registry"
	if ref, e := name.ParseReference(reference); e == nil {
		host = ref.Context().RegistryStr()
	}
	var status *transport.Error
	text := err.Error() // go-containerregistry's own errors have no types that others could ask for
	switch {
	case errors.As(err, &status):
		err = fmt.Errorf("%s: %w", meaning(status.StatusCode, host), err)
	case errors.Is(err, errStalled), strings.Contains(text, "timeout awaiting response headers"):
		err = fmt.Errorf("the registry %s does not answer: %w", host, err)
	case errors.Is(err, io.ErrUnexpectedEOF), strings.Contains(text, "error verifying"):
		err = fmt.Errorf("what %s sent is not what the manifest names, or was cut off: %w", host, err)
	}
	return fmt.Errorf("image %s: %w", reference, err)
}

func meaning(status int, host string) string {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fmt.Sprintf("%s refuses access: log in (`docker login %s` or `podman login %s`), or the name is wrong", host, host, host)
	case status == http.StatusNotFound:
		return host + " has no such image"
	case status == http.StatusTooManyRequests:
		return host + " limits how often it is asked: try later, or log in"
	case status >= 500:
		return host + " has a fault of its own: try later"
	}
	return host + " refuses"
}
