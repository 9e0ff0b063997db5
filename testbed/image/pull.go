package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// Progress is called with the bytes downloaded so far and in total.
type Progress func(done, total int64)

// Size returns how many bytes pulling an image would download.
func (s Store) Size(ctx context.Context, reference string) (int64, error) {
	_, size, err := s.remote(ctx, reference)
	return size, explain(reference, err)
}

// Pull pulls the image that a reference has in its registry now, with the user's credentials,
// unless the store has that image.
func (s Store) Pull(ctx context.Context, reference string, say Progress) (Image, error) {
	img, size, err := s.remote(ctx, reference)
	if err != nil {
		return Image{}, explain(reference, err)
	}
	d := &download{Image: img, store: s, say: say, total: size}
	i, err := s.add(ctx, reference, func() (v1.Image, error) { return d, nil })
	return i, explain(reference, err)
}

// Load adds an image from a directory with an OCI layout, or from a file that `docker save` or
// `podman save` wrote.
func (s Store) Load(ctx context.Context, reference, from string) (Image, error) {
	if strings.Contains(reference, "@") {
		return Image{}, fmt.Errorf("image %s: an image from a file is named without a digest", reference)
	}
	i, err := s.add(ctx, reference, func() (v1.Image, error) { return open(from) })
	if err != nil {
		err = fmt.Errorf("image %s: %s: %w", reference, from, err)
	}
	return i, err
}

// open opens an image.
func open(from string) (v1.Image, error) {
	info, err := os.Stat(from)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		img, err := tarball.ImageFromPath(from, nil)
		if err != nil {
			err = fmt.Errorf("no archive of docker save: %w; that of an OCI layout has to be unpacked first: tar -xf %s "+
				"-C DIRECTORY", err, from)
		}
		return img, err
	}
	index, err := layout.ImageIndexFromPath(from)
	if err != nil {
		return nil, fmt.Errorf("no OCI layout: %w", err)
	}
	return choose(index)
}

// choose returns the image of an index for this machine. Some layouts have an index in their index.
func choose(index v1.ImageIndex) (v1.Image, error) {
	images, err := partial.FindImages(index, func(d v1.Descriptor) bool {
		return d.Platform == nil || d.Platform.Satisfies(platform())
	})
	if err != nil {
		return nil, err
	}
	if len(images) > 0 {
		return images[0], nil
	}
	inner, err := partial.FindIndexes(index, func(v1.Descriptor) bool { return true })
	if err != nil {
		return nil, err
	}
	if len(inner) == 0 {
		return nil, fmt.Errorf("no image for %s", platform())
	}
	return choose(inner[0])
}

func platform() v1.Platform { return v1.Platform{OS: "linux", Architecture: runtime.GOARCH} }

// remote returns an image in its registry, and its download size.
func (s Store) remote(ctx context.Context, reference string) (img v1.Image, size int64, err error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return nil, 0, err
	}
	img, err = remote.Image(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithPlatform(platform()), remote.WithTransport(s.transport()), remote.WithUserAgent(userAgent),
		remote.WithRetryBackoff(remote.Backoff{Duration: pause, Factor: 3, Steps: tries}))
	if err != nil {
		return nil, 0, err
	}
	manifest, err := img.Manifest()
	if err != nil {
		return nil, 0, err
	}
	return img, compressed(manifest), nil
}

const (
	userAgent = "plimsoll"
	// How often a failed request is sent, and the first pause between two.
	tries = 3
	pause = 300 * time.Millisecond
)

// transport uses the proxies of the environment and gives up on a registry that stalls.
func (s Store) transport() http.RoundTripper {
	base := http.DefaultTransport.(*http.Transport).Clone() // unless a program replaces it
	dial := base.DialContext
	base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		return patient{c, s.Stall}, err
	}
	return base
}

// compressed returns the download size of an image's layers.
func compressed(m *v1.Manifest) (sum int64) {
	for _, l := range m.Layers {
		sum += l.Size
	}
	return sum
}

// unpacking is the prefix of temporary directories, which are removed when an attempt ends or,
// if it was killed, by the next one.
const unpacking = "unpacking-"

// add unpacks an image if it is not in the store, and makes the reference refer to it. Only a
// complete image lies under its digest.
func (s Store) add(ctx context.Context, reference string, open func() (v1.Image, error)) (i Image, err error) {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return i, err
	}
	unlock, err := testbed.LockFile(filepath.Join(s.Dir, "lock"))
	if err != nil {
		return i, err
	}
	defer unlock()
	if err := s.sweep(); err != nil {
		return i, err
	}
	defer func() { err = errors.Join(err, s.sweep()) }()
	img, err := open()
	if err != nil {
		return i, err
	}
	digest, err := img.Digest()
	if err != nil {
		return i, err
	}
	dir := s.at(digest.String())
	if i, err = read(dir); err != nil {
		i, err = s.unpacked(ctx, img, Image{Reference: reference, Digest: digest.String(), dir: dir})
		if err == nil {
			err = os.RemoveAll(s.parts())
		}
		if err != nil {
			return i, err
		}
	}
	i.Reference = reference // it may have been added by another name
	return i, s.point(reference, i)
}

func (s Store) sweep() error {
	left, err := filepath.Glob(filepath.Join(s.Dir, unpacking+"*"))
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// unpacked creates the directory of an image, and fills in the rest of i.
func (s Store) unpacked(ctx context.Context, img v1.Image, i Image) (Image, error) {
	manifest, err := img.Manifest()
	if err != nil {
		return i, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return i, err
	}
	if config.OS != "" && config.OS != "linux" || config.Architecture != "" && config.Architecture != runtime.GOARCH {
		return i, fmt.Errorf("it is for %s/%s, and this machine is %s", config.OS, config.Architecture, platform())
	}
	tmp, err := os.MkdirTemp(s.Dir, unpacking)
	if err != nil {
		return i, err
	}
	root := filepath.Join(tmp, rootDir)
	err = errors.Join(os.Chmod(tmp, 0o755), os.Mkdir(root, 0o755), os.Mkdir(filepath.Join(tmp, mountDir), 0o755))
	if err != nil {
		return i, err
	}
	if err := unpack(ctx, img, root); err != nil {
		return i, err
	}
	i.Env, i.Size = config.Config.Env, compressed(manifest)
	i.Entrypoint = slices.Concat(config.Config.Entrypoint, config.Config.Cmd)
	about, err := json.Marshal(i)
	if err != nil {
		return i, err
	}
	if err := os.WriteFile(filepath.Join(tmp, aboutFile), about, 0o644); err != nil {
		return i, err
	}
	if err := os.RemoveAll(i.dir); err != nil { // it was unreadable
		return i, err
	}
	return i, os.Rename(tmp, i.dir)
}

// patient is a connection that fails if nothing arrives for so long.
type patient struct {
	net.Conn
	stall time.Duration
}

func (p patient) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(p.stall)); err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}

// explain adds the name of the image to an error, and explains some statuses of a registry.
func explain(reference string, err error) error {
	if err == nil {
		return nil
	}
	var status *transport.Error
	if errors.As(err, &status) {
		switch status.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			err = fmt.Errorf("its registry refuses: log in (docker login, podman login), or the name is wrong: %w", err)
		case http.StatusNotFound:
			err = fmt.Errorf("its registry has no such image: %w", err)
		}
	}
	return fmt.Errorf("image %s: %w", reference, err)
}

// download is an image in a registry. Its layers are kept in files until the image is complete,
// so that a second attempt does not download them again.
type download struct {
	v1.Image
	store       Store
	say         Progress // may be nil
	done, total int64
}

// Layers implements v1.Image.
func (d *download) Layers() ([]v1.Layer, error) {
	layers, err := d.Image.Layers()
	for n, l := range layers {
		if err == nil {
			layers[n], err = partial.CompressedToLayer(downloaded{l, d})
		}
	}
	return layers, err
}

// Write counts the downloaded bytes.
func (d *download) Write(p []byte) (int, error) {
	d.done += int64(len(p))
	if d.say != nil {
		d.say(d.done, d.total)
	}
	return len(p), nil
}

type downloaded struct {
	v1.Layer
	of *download
}

// Compressed implements partial.CompressedLayer.
func (l downloaded) Compressed() (io.ReadCloser, error) {
	digest, err := l.Digest()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(l.of.store.parts(), digest.Hex)
	begun := l.of.done
	if f, err := os.Open(path); err == nil {
		got, _, err := v1.SHA256(io.TeeReader(f, l.of))
		if f.Close(); err == nil && got == digest {
			return os.Open(path)
		}
	}
	l.of.done = begun
	if err := l.fetch(path); err != nil {
		return nil, err
	}
	return os.Open(path)
}

// fetch downloads the layer, which the registry's client verifies.
func (l downloaded) fetch(path string) error {
	from, err := l.Layer.Compressed()
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.CreateTemp(l.of.store.Dir, unpacking)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, io.TeeReader(from, l.of))
	if err = errors.Join(err, to.Close()); err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err != nil {
		return err
	}
	return os.Rename(to.Name(), path)
}
