// Package disk writes objects as plain files, in one way for all systems that
// serve files: how a file came into the page cache decides what sending it
// costs, so a baseline must not be written otherwise than what it is compared with.
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
	"regexp"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Probe is the name and the content of the object that health probes fetch.
const Probe = "probe.plimsoll"

// ProbeContent is what Probe holds.
var ProbeContent = []byte("it serves\n")

// Dir is a directory on a host; nodes embed that of the objects which a server of ours
// serves.
type Dir struct {
	Files testbed.Files
	Path  string
}

// Of is a directory of a deployment on one of its hosts.
func Of(d system.Deployment, h testbed.Host, name string) Dir {
	return Dir{h.Files(), filepath.Join(d.DirOf(h), name)}
}

// NewDir makes a directory of objects, with the probe in it.
func NewDir(ctx context.Context, files testbed.Files, path string) (Dir, error) {
	d := Dir{files, path}
	return d, d.Write(ctx, Probe, int64(len(ProbeContent)), bytes.NewReader(ProbeContent))
}

// Write stores size bytes of r as a file of the directory. It appears whole or not at
// all.
func (d Dir) Write(ctx context.Context, file string, size int64, r io.Reader) error {
	body, err := web.Exactly(r, size)
	if err != nil {
		return err
	}
	return d.Files.Write(ctx, filepath.Join(d.Path, file), 0o644, body)
}

// Sub is a directory within d.
func (d Dir) Sub(name string) Dir { return Dir{d.Files, filepath.Join(d.Path, name)} }

// Seed implements system.Seeder: it writes the file where the server reads it.
func (d Dir) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	file := FileName(name)
	return system.Ref(file), d.Write(ctx, file, size, r)
}

// Stats implements system.Stats: one file for each object.
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

// FileName encodes an object's name, which may be any string, as a file name
// that is also a URL path segment needing no escape. Bytes other than letters,
// digits, '.', '-', '_' become =XX; names too long for a file system become
// their hash. Different names stay different.
func FileName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	if b.Len() == 0 || b.Len() > 200 {
		return hashed(name)
	}
	return b.String()
}

func hashed(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "=sha256=" + hex.EncodeToString(sum[:])
}

// devices are the names that Windows keeps for devices, whatever their extension.
var devices = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)`)

// PortableName is FileName for servers that refuse what Windows has no files of: a
// dot at the end of a name or before its extension, and the name of a device.
func PortableName(name string) string {
	file := FileName(name)
	var b strings.Builder
	for i := range len(file) {
		switch {
		case file[i] == '.' && (i == len(file)-1 || file[i+1] == '.'), i == 0 && devices.MatchString(file):
			fmt.Fprintf(&b, "=%02X", file[i])
		default:
			b.WriteByte(file[i])
		}
	}
	if b.Len() > 255 {
		return hashed(name)
	}
	return b.String()
}

// Name is the inverse of FileName where there is one; of a hashed name it is
// the file name.
func Name(file string) string {
	name, err := url.PathUnescape(strings.NewReplacer("=", "%", "%", "%25").Replace(file))
	if err != nil {
		return file
	}
	return name
}

// PathName is FileName of each part of a name between its slashes, which stay: a
// key or a path by which people find what they stored. A name that is no plain
// relative path (an empty part, a part of dots) or is too long for a key has none of its
// slashes left, as FileName makes it. Different names stay different.
func PathName(name string) string {
	if !strings.Contains(name, "/") {
		return FileName(name)
	}
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

// longestPath leaves room for a prefix: keys of S3 have up to 1024 bytes.
const longestPath = 800

// NameOfPath is the inverse of PathName where there is one.
func NameOfPath(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = Name(part)
	}
	return strings.Join(parts, "/")
}

// ValidPath says whether path can have come from PathName.
func ValidPath(path string) error {
	for part := range strings.SplitSeq(path, "/") {
		if err := Valid(part); err != nil {
			return err
		}
	}
	return nil
}

// Valid says whether file can have come from FileName: it stays in its
// directory and names no temporary file.
func Valid(file string) error {
	if file == "" || file[0] == '.' || strings.ContainsAny(file, "/\x00") {
		return fmt.Errorf("%q is not an object's file name", file)
	}
	return nil
}
