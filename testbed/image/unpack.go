package image

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// unpack writes the layers of an image into dir, the lowest first, and verifies each.
// mutate.Extract of go-containerregistry does not support opaque directories, and returns
// hard links before their targets.
func unpack(ctx context.Context, img v1.Image, dir string, limit int64) error {
	config, err := img.ConfigFile()
	if err != nil {
		return err
	}
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	if len(layers) != len(config.RootFS.DiffIDs) {
		return fmt.Errorf("%d layers, and its configuration names %d", len(layers), len(config.RootFS.DiffIDs))
	}
	left := limit
	for n, l := range layers {
		err := unpackLayer(ctx, dir, l, config.RootFS.DiffIDs[n], &left)
		if errors.Is(err, errTooLarge) {
			err = fmt.Errorf("%w: more than %d MB unpacked", err, limit/1e6)
		}
		if err != nil {
			return fmt.Errorf("layer %d of %d: %w", n+1, len(layers), err)
		}
	}
	return nil
}

func unpackLayer(ctx context.Context, dir string, l v1.Layer, want v1.Hash, left *int64) error {
	content, err := l.Uncompressed()
	if err != nil {
		return err
	}
	defer content.Close()
	got, err := unpackTar(ctx, content, dir, left)
	if err == nil && got != want.Hex {
		err = fmt.Errorf("wrong digest: its content is sha256:%s, not %s", got, want)
	}
	return err
}

// unpackTar unpacks an archive of at most as many bytes as are left, and returns its SHA-256.
func unpackTar(ctx context.Context, archive io.Reader, dir string, left *int64) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	sum := sha256.New()
	in := &bounded{ctx: ctx, r: io.TeeReader(archive, sum), left: left}
	err = unpacker{Root: root, made: map[string]bool{}, left: left}.all(tar.NewReader(in))
	if err == nil { // bytes after the archive's end are part of the digest
		_, err = io.Copy(io.Discard, in)
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}

var errTooLarge = errors.New("too large")

// bounded reads at most the bytes that are left.
type bounded struct {
	ctx  context.Context
	r    io.Reader
	left *int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, context.Cause(b.ctx)
	}
	n, err := b.r.Read(p)
	if *b.left -= int64(n); *b.left < 0 {
		return n, errTooLarge
	}
	return n, err
}

// unpacker writes one layer. os.Root follows no link that leads out of the image.
type unpacker struct {
	*os.Root
	made map[string]bool // by this layer
	left *int64
}

// entrySize is roughly what an entry occupies besides its content, in bytes.
const entrySize = 4 << 10

const whiteout = ".wh."

func (u unpacker) all(in *tar.Reader) error {
	for {
		h, err := in.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if *u.left -= entrySize; h.Size > *u.left { // a sparse file is larger than its part of the archive
			return errTooLarge
		}
		to := path.Clean(strings.TrimPrefix(h.Name, "/"))
		if !filepath.IsLocal(to) {
			return fmt.Errorf("%q leads out of the image", h.Name)
		}
		if to == "." {
			continue
		}
		if err := u.one(h, to, in); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

func (u unpacker) one(h *tar.Header, to string, in io.Reader) error {
	dir, base := path.Dir(to), path.Base(to)
	switch hidden, is := strings.CutPrefix(base, whiteout); {
	case !is:
	case hidden == whiteout+".opq":
		return u.hideOlder(dir)
	case strings.HasPrefix(hidden, whiteout): // of AUFS itself
		return nil
	case u.made[path.Join(dir, hidden)]:
		return nil
	default:
		return u.RemoveAll(path.Join(dir, hidden))
	}
	switch h.Typeflag {
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo, tar.TypeXGlobalHeader:
		return nil // not needed: a process gets a small /dev
	}
	if err := u.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for d := to; d != "."; d = path.Dir(d) {
		u.made[d] = true
	}
	// The owner can always read and remove the files; set-uid bits and owners are not kept.
	mode := h.FileInfo().Mode().Perm() | 0o400
	if old, err := u.Lstat(to); err == nil && old.IsDir() && h.Typeflag == tar.TypeDir {
		return u.Chmod(to, mode|0o700)
	}
	if err := u.RemoveAll(to); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return errors.Join(u.Mkdir(to, 0o700), u.Chmod(to, mode|0o700))
	case tar.TypeSymlink:
		return u.Symlink(h.Linkname, to)
	case tar.TypeLink:
		return u.Link(path.Clean(strings.TrimPrefix(h.Linkname, "/")), to)
	case tar.TypeReg, tar.TypeGNUSparse:
		return u.file(to, mode, in)
	}
	return fmt.Errorf("an entry of type %q is not known", h.Typeflag)
}

// hideOlder removes what lower layers have in a directory.
func (u unpacker) hideOlder(dir string) error {
	entries, err := fs.ReadDir(u.FS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		at := path.Join(dir, e.Name())
		switch {
		case !u.made[at]:
			err = errors.Join(err, u.RemoveAll(at))
		case e.IsDir():
			err = errors.Join(err, u.hideOlder(at))
		}
	}
	return err
}

// file writes a file.
func (u unpacker) file(to string, mode fs.FileMode, in io.Reader) error {
	f, err := u.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	return errors.Join(err, f.Chmod(mode), f.Close())
}
