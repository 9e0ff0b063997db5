package image

import (
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
)

// download is an image in a registry, which reports how much of it has been downloaded.
type download struct {
	v1.Image
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
	from, err := l.Layer.Compressed()
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.TeeReader(from, l.of), from}, nil
}
