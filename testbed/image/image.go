// Package image pulls container images and unpacks them, so that their programs can be
// started with the image as root directory, without a container engine.
package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/plimsoll-project/plimsoll/internal/atomicfile"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Store is a directory of unpacked images, each in a directory named after its digest, and
// a directory with a file for each name of an image, which contains the digest.
type Store struct {
	Dir   string
	Stall time.Duration // how long a registry may send nothing
}

// Default is the store of this user, in the cache.
func Default() (Store, error) {
	dir, err := testbed.CacheDir("images")
	return Store{Dir: dir, Stall: 30 * time.Second}, err
}

// names is the directory of the names of images.
func (s Store) names() string { return filepath.Join(s.Dir, "names") }

// parts is the directory of the layers of an incomplete image.
func (s Store) parts() string { return filepath.Join(s.Dir, "parts") }

// at is the directory of the image with a digest.
func (s Store) at(digest string) string {
	return filepath.Join(s.Dir, strings.ReplaceAll(digest, ":", "-"))
}

// Image is an unpacked image.
type Image struct {
	Reference  string   `json:"reference"` // name by which it was first pulled
	Digest     string   `json:"digest"`    // of its manifest
	Env        []string `json:"env"`
	Entrypoint []string `json:"entrypoint"`
	Size       int64    `json:"size"` // bytes downloaded
	dir        string
}

// Entries of the directory of an image. mountDir is where each process mounts its root, in
// its own mount namespace.
const (
	rootDir   = "root"
	aboutFile = "image.json"
	runDir    = "run"
	mountDir  = "mount"
)

// String is the name and the digest, for records.
func (i Image) String() string {
	before, _, _ := strings.Cut(i.Reference, "@")
	return before + "@" + i.Digest
}

// ErrAbsent is returned for an image that is not in the store.
var ErrAbsent = errors.New("not on this machine")

// Find returns the image with a reference, "NAME[:TAG][@sha256:…]".
func (s Store) Find(reference string) (Image, error) {
	if _, err := name.ParseReference(reference); err != nil {
		return Image{}, fmt.Errorf("image %q: %w", reference, err)
	}
	i, err := s.find(reference)
	i.Reference = reference
	return i, err
}

// Alias gives an image an additional name, which cannot be a reference.
func (s Store) Alias(alias string, i Image) error { return s.point("="+alias, i) }

// Installed returns the image with that alias.
func (s Store) Installed(alias string) (Image, error) { return s.find("=" + alias) }

func (s Store) find(key string) (Image, error) {
	digest, err := s.digest(key)
	if err == nil {
		_, err = os.Stat(s.at(digest))
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrAbsent
	}
	if err != nil {
		return Image{}, fmt.Errorf("image %s: %w", key, err)
	}
	return read(s.at(digest))
}

// file is the file with the digest of a name. Different spellings of a reference have the same file.
func (s Store) file(key string) string {
	if r, err := name.ParseReference(key); err == nil {
		key = r.Name()
	}
	return filepath.Join(s.names(), url.QueryEscape(key))
}

// digest returns the digest of a name, or in it.
func (s Store) digest(key string) (string, error) {
	if r, err := name.NewDigest(key); err == nil {
		return r.DigestStr(), nil
	}
	b, err := os.ReadFile(s.file(key))
	if err != nil {
		return "", err
	}
	h, err := v1.NewHash(strings.TrimSpace(string(b)))
	return h.String(), err
}

// point makes a name refer to an image, atomically.
func (s Store) point(key string, i Image) error {
	if err := os.MkdirAll(s.names(), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(s.file(key), func(w io.Writer) error {
		_, err := fmt.Fprintln(w, i.Digest)
		return err
	})
}

func read(dir string) (Image, error) {
	i := Image{dir: dir}
	b, err := os.ReadFile(filepath.Join(dir, aboutFile))
	if err == nil {
		err = json.Unmarshal(b, &i)
	}
	if err != nil {
		return i, fmt.Errorf("image in %s: %w; remove that directory and pull it again", dir, err)
	}
	return i, nil
}

// Program returns a command on this machine that runs the first of these programs that the
// image has. Each is a path in the image, or a name in its PATH or of its entry point.
func (i Image) Program(names ...string) (string, error) {
	dirs := filepath.SplitList(testbed.ImagePath)
	for _, e := range i.Env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			dirs = filepath.SplitList(v)
		}
	}
	for _, n := range names {
		paths := []string{n}
		if !path.IsAbs(n) {
			paths = nil
			for _, d := range dirs {
				paths = append(paths, path.Join(d, n))
			}
			at := slices.IndexFunc(i.Entrypoint, func(e string) bool { return path.IsAbs(e) && path.Base(e) == n })
			if at >= 0 {
				paths = append(paths, i.Entrypoint[at])
			}
		}
		for _, p := range paths {
			if i.executable(p) {
				return i.launcher(p)
			}
		}
	}
	return "", fmt.Errorf("image %s: it has no program %s (PATH %s, entry point %q); "+
		"name its path in the image in option `binary`",
		i, strings.Join(names, ", "), strings.Join(dirs, ":"), i.Entrypoint)
}

// executable reports whether a path in the image is a program or a link, which may be
// absolute and so be valid only in the image.
func (i Image) executable(p string) bool {
	root, err := os.OpenRoot(filepath.Join(i.dir, rootDir))
	if err != nil {
		return false
	}
	defer root.Close()
	info, err := root.Lstat(strings.TrimPrefix(path.Clean(p), "/"))
	return err == nil && (info.Mode()&fs.ModeSymlink != 0 || info.Mode().IsRegular() && info.Mode()&0o111 != 0)
}

// launcher writes a script that runs a program of the image, so that callers start it like
// any other program.
func (i Image) launcher(program string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("image %s: find our own executable: %w", i, err)
	}
	root, mount := filepath.Join(i.dir, rootDir), filepath.Join(i.dir, mountDir)
	args := slices.Concat([]string{self, "node", "image", root, mount}, i.Env, []string{"--", program})
	for n, a := range args {
		args[n] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	text := fmt.Sprintf("#!/bin/sh\n# Runs %s of the container image %s.\nexec %s \"$@\"\n",
		program, i, strings.Join(args, " "))
	script := filepath.Join(i.dir, runDir, filepath.FromSlash(program))
	if b, err := os.ReadFile(script); err == nil && string(b) == text {
		return script, nil
	}
	// A child forked meanwhile would hold the file open for writing, and then the file
	// could not be executed.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	err = testbed.LocalFiles{}.Write(context.Background(), script, 0o755, strings.NewReader(text))
	if err != nil {
		return "", fmt.Errorf("image %s: %w", i, err)
	}
	return script, nil
}

// Of returns the image whose program a command of [Image.Program] runs, and the path of the
// program in the image.
func Of(command string) (i Image, program string, ok bool) {
	for dir := filepath.Dir(command); filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if filepath.Base(dir) != runDir {
			continue
		}
		if i, err := read(filepath.Dir(dir)); err == nil {
			return i, strings.TrimPrefix(command, dir), true
		}
	}
	return Image{}, "", false
}

// Head reads the beginning of a file of the image, such as the first line of a script.
func (i Image) Head(program string, b []byte) (int, error) {
	f, err := os.OpenInRoot(filepath.Join(i.dir, rootDir), strings.TrimPrefix(program, "/"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.Read(b)
}
