package image

import (
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
)

// download is an image in a registry that says how much of its layers has come.
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
			layers[n], err = partial.CompressedToLayer(counted{l, d})
		}
	}
	return layers, err
}

// Write counts what comes.
func (d *download) Write(p []byte) (int, error) {
	d.done += int64(len(p))
	if d.say != nil {
		d.say(d.done, d.total)
	}
	return len(p), nil
}

type counted struct {
	v1.Layer
	by *download
}

// Compressed implements partial.CompressedLayer.
func (l counted) Compressed() (io.ReadCloser, error) {
	from, err := l.Layer.Compressed()
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.TeeReader(from, l.by), from}, nil
}
