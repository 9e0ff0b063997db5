package workload

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Entry is one file of a [Manifest].
type Entry struct {
	Path     string // with slashes, below the root
	Size     int64  // bytes
	Modified int64  // Unix time in nanoseconds
}

// Manifest is the files of a directory tree, sorted by path.
type Manifest []Entry

// manifestHead is the first line of a written manifest.
const manifestHead = "plimsoll manifest 1"

// Write writes the manifest as text: a line for each file with its size, its
// time and its path, quoted as in Go.
func (m Manifest) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, manifestHead)
	var line []byte
	for _, e := range m {
		line = strconv.AppendInt(line[:0], e.Size, 10)
		line = strconv.AppendInt(append(line, '\t'), e.Modified, 10)
		line = strconv.AppendQuote(append(line, '\t'), e.Path)
		b.Write(append(line, '\n'))
	}
	return b.Flush()
}

// ReadManifest reads what Write wrote.
func ReadManifest(r io.Reader) (Manifest, error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	if !in.Scan() || in.Text() != manifestHead {
		if err := in.Err(); err != nil {
			return nil, fmt.Errorf("manifest: %w", err)
		}
		return nil, fmt.Errorf("manifest: it does not begin with %q", manifestHead)
	}
	var m Manifest
	for line := 2; in.Scan(); line++ {
		f := strings.SplitN(in.Text(), "\t", 3)
		if len(f) != 3 {
			return nil, fmt.Errorf("manifest: line %d has %d fields, want 3", line, len(f))
		}
		size, err1 := strconv.ParseInt(f[0], 10, 64)
		modified, err2 := strconv.ParseInt(f[1], 10, 64)
		path, err3 := strconv.Unquote(f[2])
		if err := cmp.Or(err1, err2, err3); err != nil {
			return nil, fmt.Errorf("manifest: line %d: %w", line, err)
		}
		m = append(m, Entry{path, size, modified})
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return m, nil
}

// WriteFile writes the manifest to path, compressed with zstd. The file appears
// under its name only when it is complete.
func (m Manifest) WriteFile(path string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = fmt.Errorf("manifest: write %s: %w", path, err)
		}
	}()
	z, err := zstd.NewWriter(f, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	if err := m.Write(z); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// ReadManifestFile reads what WriteFile wrote.
func ReadManifestFile(path string) (Manifest, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	defer z.Close()
	m, err := ReadManifest(z)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// Changes are the differences between two manifests.
type Changes struct {
	Added, Removed, Changed int    // files
	Retimed                 int    // of those changed: only the time of the last change differs
	First                   string // path of the first of them all; empty: there are none
	Before, After           Entry  // the first that has changed
}

// Diff says how later differs from m.
func (m Manifest) Diff(later Manifest) Changes {
	var c Changes
	note := func(n *int, path string) {
		*n++
		if c.First == "" {
			c.First = path
		}
	}
	i, k := 0, 0
	for i < len(m) || k < len(later) {
		order := -1
		switch {
		case i == len(m):
			order = 1
		case k < len(later):
			order = strings.Compare(m[i].Path, later[k].Path)
		}
		switch {
		case order < 0:
			note(&c.Removed, m[i].Path)
			i++
		case order > 0:
			note(&c.Added, later[k].Path)
			k++
		default:
			if m[i] != later[k] {
				note(&c.Changed, m[i].Path)
				if c.Changed == 1 {
					c.Before, c.After = m[i], later[k]
				}
				if m[i].Size == later[k].Size {
					c.Retimed++
				}
			}
			i, k = i+1, k+1
		}
	}
	return c
}

// None reports whether there are no differences.
func (c Changes) None() bool { return c.Added+c.Removed+c.Changed == 0 }

// String is like "3 files added, 1 removed, 2 changed (first: a/b.txt)".
func (c Changes) String() string {
	if c.None() {
		return "no file added, removed or changed"
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{c.Added, "added"}, {c.Removed, "removed"}, {c.Changed, "changed"}} {
		if p.n == 0 {
			continue
		}
		noun := ""
		if len(parts) == 0 {
			if noun = " files"; p.n == 1 {
				noun = " file"
			}
		}
		parts = append(parts, strconv.Itoa(p.n)+noun+" "+p.what)
	}
	return strings.Join(parts, ", ") + " (first: " + c.First + ")" + c.detail()
}

// detail says what differs of the first file that has changed.
func (c Changes) detail() string {
	if c.Changed == 0 {
		return ""
	}
	text := "; " + c.After.Path
	if c.Before.Size != c.After.Size {
		text += fmt.Sprintf(" has %d bytes and had %d", c.After.Size, c.Before.Size)
	} else {
		text += fmt.Sprintf(" has its %d bytes", c.After.Size)
	}
	if c.Before.Modified != c.After.Modified {
		text += fmt.Sprintf(", and was written at %s, not %s", manifestTime(c.After.Modified), manifestTime(c.Before.Modified))
	}
	return text
}

// OnlyTimes reports whether the files are the same but for when they were last
// written: their content may be the same, too.
func (c Changes) OnlyTimes() bool {
	return !c.None() && c.Added+c.Removed == 0 && c.Retimed == c.Changed
}

// manifestTime is to the nanosecond, as `touch -d` takes it.
func manifestTime(ns int64) string {
	return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.999999999Z")
}

// Touch is the command that gives the first file that has changed its time back.
func (c Changes) Touch() string {
	return fmt.Sprintf("touch -d %s %s", manifestTime(c.Before.Modified), strconv.Quote(c.Before.Path))
}

func (m Manifest) fingerprint(copies int) string {
	h := sha256.New()
	fmt.Fprintf(h, "plimsoll directory set v1\ncopies %d\n", copies)
	m.Write(h) // a hash takes everything
	return hex.EncodeToString(h.Sum(nil))
}
