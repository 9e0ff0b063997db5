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
func unpack(ctx context.Context, img v1.Image, dir string) error {
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
	for n, l := range layers {
		if err := unpackLayer(ctx, dir, l, config.RootFS.DiffIDs[n]); err != nil {
			return fmt.Errorf("layer %d of %d: %w", n+1, len(layers), err)
		}
	}
	return nil
}

func unpackLayer(ctx context.Context, dir string, l v1.Layer, want v1.Hash) error {
	content, err := l.Uncompressed()
	if err != nil {
		return err
	}
	defer content.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	sum := sha256.New()
	in := io.TeeReader(content, sum)
	err = unpacker{Root: root, made: map[string]bool{}}.all(ctx, tar.NewReader(in))
	if err == nil { // bytes after the archive's end are part of the digest
		_, err = io.Copy(io.Discard, in)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); err == nil && got != want.Hex {
		err = fmt.Errorf("wrong digest: its content is sha256:%s, not %s", got, want)
	}
	return err
}

// unpacker writes one layer. os.Root follows no link that leads out of the image.
type unpacker struct {
	*os.Root
	made map[string]bool // by this layer
}

const whiteout = ".wh."

func (u unpacker) all(ctx context.Context, in *tar.Reader) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		h, err := in.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
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
