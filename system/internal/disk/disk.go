// Package disk writes objects as plain files, in the same way for all systems that serve files: how
// a file got into the page cache affects the cost of sending it, so a baseline must be written like
// the files it is compared with.
package disk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Probe is the name of the object that health probes fetch.
const Probe = "probe.plimsoll"

// ProbeContent is the content of Probe.
var ProbeContent = []byte("it serves\n")

// Dir is a directory on a host; nodes of started servers embed that of their objects.
type Dir struct {
	Files testbed.Files
	Path  string
}

// Of returns a directory of a deployment on one of its hosts.
func Of(d system.Deployment, h testbed.Host, name string) Dir {
	return Dir{h.Files(), filepath.Join(d.DirOf(h), name)}
}

// NewDir creates a directory of objects that contains the probe.
func NewDir(ctx context.Context, files testbed.Files, path string) (Dir, error) {
	d := Dir{files, path}
	return d, d.Write(ctx, Probe, int64(len(ProbeContent)), bytes.NewReader(ProbeContent))
}

// Write stores size bytes of r as a file of the directory. The file appears completely or not at
// all.
func (d Dir) Write(ctx context.Context, file string, size int64, r io.Reader) error {
	body, err := web.Exactly(r, size)
	if err != nil {
		return err
	}
	return d.Files.Write(ctx, filepath.Join(d.Path, file), 0o644, body)
}

// Sub returns a subdirectory of d.
func (d Dir) Sub(name string) Dir { return Dir{d.Files, filepath.Join(d.Path, name)} }

// Seed implements system.Seeder by writing the file that the server reads.
func (d Dir) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	file := FileName(name)
	return system.Ref(file), d.Write(ctx, file, size, r)
}

// Stats implements system.Stats for one file per object.
func (d Dir) Stats(ctx context.Context) (h system.Holdings, err error) {
	if h, err = Usage(d); err != nil {
		return h, err
	}
	h.Objects = 0
	err = d.List(ctx, func(system.Object) error {
		h.Objects++
		return nil
	})
	return h, err
}

// List implements system.Lister.
func (d Dir) List(_ context.Context, visit func(system.Object) error) error {
	return d.Files.Walk(d.Path, func(e testbed.Entry) error {
		if Valid(e.Path) == nil && e.Path != Probe && e.Mode.IsRegular() {
			return visit(system.Object{Name: Name(e.Path), Ref: system.Ref(e.Path), Size: e.Size})
		}
		return nil
	})
}

// FileName encodes an object's name, which may be any string, as a file name that is also a URL
// path segment without escapes. Bytes other than letters, digits, '.', '-', '_' become =XX; names
// too long for a file system become their hash. Different names stay different.
func FileName(name string) string {
	file := strings.NewReplacer("%", "=", "+", "=20", "~", "=7E").Replace(url.QueryEscape(name))
	if strings.HasPrefix(file, ".") {
		file = "=2E" + file[1:]
	}
	if file == "" || len(file) > 200 {
		sum := sha256.Sum256([]byte(name))
		return "=sha256=" + hex.EncodeToString(sum[:])
	}
	return file
}

// Name is the inverse of FileName; for a hashed name it returns the file name.
func Name(file string) string {
	name, err := url.PathUnescape(strings.NewReplacer("=", "%", "%", "%25").Replace(file))
	if err != nil {
		return file
	}
	return name
}

// PathName applies FileName to each part of a name and keeps the slashes between them: the result
// is a key or path by which people find their objects. In a name that is not a plain relative path
// (an empty part, or a part of dots) or is too long for a key, slashes are encoded as well, as by
// FileName. Different names stay different.
func PathName(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if part == "" || part == "." || part == ".." {
			return FileName(name)
		}
		parts[i] = FileName(part)
	}
	if path := strings.Join(parts, "/"); len(path) <= longestPath {
		return path
	}
	return FileName(name)
}

// longestPath leaves room for a prefix: S3 keys have up to 1024 bytes.
const longestPath = 800

// NameOfPath is the inverse of PathName, except for hashed names.
func NameOfPath(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = Name(part)
	}
	return strings.Join(parts, "/")
}

// ValidPath returns an error if path cannot be a result of PathName.
func ValidPath(path string) error {
	for part := range strings.SplitSeq(path, "/") {
		if err := Valid(part); err != nil {
			return err
		}
	}
	return nil
}

// Valid returns an error if file cannot be a result of FileName. A valid name stays in its
// directory and is not that of a temporary file.
func Valid(file string) error {
	if file == "" || file[0] == '.' || strings.ContainsAny(file, "/\x00") {
		return fmt.Errorf("%q is not an object's file name", file)
	}
	return nil
}

// Usage returns what the trees below dirs contain; dirs must not overlap. Absolute is the apparent
// size of regular files. Disk is the size of all blocks, including those of directories and of dirs
// themselves; a file with several names is one inode and counts once. Objects is −1: only the
// system knows its layout. Entries named [Probe] belong to Plimsoll and are skipped. Symbolic links
// are not followed; files that vanish during the walk may or may not count.
func Usage(dirs ...Dir) (system.Holdings, error) {
	type inode struct {
		files          testbed.Files
		device, number uint64
	}
	seen := map[inode]bool{}
	total := system.Holdings{Objects: -1}
	for _, d := range dirs {
		if err := d.Files.Walk(d.Path, func(e testbed.Entry) error {
			if slices.Contains(strings.Split(e.Path, "/"), Probe) {
				return nil
			}
			if e.Path != "." {
				total.Entries++
			}
			if id := (inode{d.Files, e.Device, e.Inode}); !seen[id] {
				seen[id] = true
				total.Disk += e.Disk
				if e.Mode.IsRegular() {
					total.Absolute += e.Size
				}
			}
			return nil
		}); err != nil {
			return system.Holdings{}, fmt.Errorf("disk usage of %s: %w", d.Path, err)
		}
	}
	total.Inodes = int64(len(seen))
	return total, nil
}
