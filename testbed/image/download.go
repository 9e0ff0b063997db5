package image

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
)

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
