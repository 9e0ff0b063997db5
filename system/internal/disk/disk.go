// Package disk writes objects as plain files, in one way for all systems that
// serve files: how a file came into the page cache decides what sending it
// costs, so a baseline must not be written otherwise than what it is compared with.
package disk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
)

// Probe is the name and the content of the object that health probes fetch.
const Probe = "probe.plimsoll"

// ProbeContent is what Probe holds.
var ProbeContent = []byte("it serves\n")

const chunk = 1 << 20

// Dir is a directory of objects that a server of ours serves; nodes embed it.
type Dir struct{ Path string }

// NewDir makes the directory, with the probe in it.
func NewDir(ctx context.Context, path string) (Dir, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return Dir{}, err
	}
	return Dir{path}, WriteFile(ctx, path, Probe, int64(len(ProbeContent)), bytes.NewReader(ProbeContent))
}

// Seed implements system.Seeder: it writes the file where the server reads it.
func (d Dir) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	file, err := Write(ctx, d.Path, name, size, r)
	return system.Ref(file), err
}

// Stats implements system.Stats: one file for each object.
func (d Dir) Stats(context.Context) (system.Holdings, error) {
	h, err := Usage(d.Path)
	if err != nil {
		return h, err
	}
	h.Objects = 0
	return h, list(d.Path, func(string, int64) { h.Objects++ })
}

// List implements system.Lister.
func (d Dir) List(context.Context) (all []system.Object, err error) {
	err = list(d.Path, func(file string, size int64) {
		all = append(all, system.Object{Name: Name(file), Ref: system.Ref(file), Size: size})
	})
	return all, err
}

// Write stores size bytes of r as dir/FileName(name) and returns the file
// name. The file appears whole or not at all.
func Write(ctx context.Context, dir, name string, size int64, r io.Reader) (string, error) {
	file := FileName(name)
	return file, WriteFile(ctx, dir, file, size, r)
}

// WriteFile is Write for a name that is a file name already.
func WriteFile(ctx context.Context, dir, file string, size int64, r io.Reader) error {
	f, err := os.CreateTemp(dir, ".put-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails when renamed, as it should
	defer f.Close()
	if err := copyExactly(ctx, f, r, size); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := errors.Join(f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(dir, file))
}

func copyExactly(ctx context.Context, w io.Writer, r io.Reader, size int64) error {
	buf := make([]byte, min(chunk, size+1))
	var done int64
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(r, buf)
		if done += int64(n); done > size {
			return fmt.Errorf("the reader has more than %d bytes", size)
		}
		if _, werr := w.Write(buf[:n]); werr != nil {
			return werr
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			if done < size {
				return fmt.Errorf("the reader ended after %d of %d bytes: %w", done, size, io.ErrUnexpectedEOF)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Delete removes a file that Write made.
func Delete(dir, file string) error {
	if err := Valid(file); err != nil {
		return err
	}
	return os.Remove(filepath.Join(dir, file))
}

// list calls yield for each object in dir.
func list(dir string, yield func(file string, size int64)) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if Valid(e.Name()) != nil || e.Name() == Probe || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile
		}
		if err != nil {
			return err
		}
		yield(e.Name(), info.Size())
	}
	return nil
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

// PortableName is FileName for servers that refuse what Windows has no files of: a
// dot at the end of a name or before its extension, and the names of devices.
func PortableName(name string) string {
	file := FileName(name)
	var b strings.Builder
	for i := range len(file) {
		if file[i] == '.' && (i == len(file)-1 || file[i+1] == '.') {
			b.WriteString("=2E")
		} else {
			b.WriteByte(file[i])
		}
	}
	out := b.String()
	if stem := strings.TrimSuffix(out, filepath.Ext(out)); device.MatchString(stem) {
		out = fmt.Sprintf("=%02X%s", out[0], out[1:])
	}
	if len(out) > longestPortable {
		return hashed(name)
	}
	return out
}

var device = regexp.MustCompile(`(?i)^(CON|PRN|AUX|NUL|COM\d|LPT\d)$`)

const longestPortable = 255

// Name is the inverse of FileName where there is one; of a hashed name it is
// the file name.
func Name(file string) string {
	var b strings.Builder
	for i := 0; i < len(file); i++ {
		if file[i] != '=' {
			b.WriteByte(file[i])
			continue
		}
		if i+2 >= len(file) {
			return file
		}
		c, err := hex.DecodeString(file[i+1 : i+3])
		if err != nil {
			return file
		}
		b.WriteByte(c[0])
		i += 2
	}
	return b.String()
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
