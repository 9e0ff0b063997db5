package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/internal/timing"
)

// LocalFiles are the files of this machine.
type LocalFiles struct{}

// MkdirAll implements Files.
func (LocalFiles) MkdirAll(dir string, mode fs.FileMode) error { return os.MkdirAll(dir, mode) }

// ReadFile implements Files.
func (LocalFiles) ReadFile(path string) ([]byte, error) { return os.ReadFile(path) }

// Open implements Files.
func (LocalFiles) Open(path string) (io.ReadCloser, error) { return os.Open(path) }

// Rename implements Files.
func (LocalFiles) Rename(from, to string) error { return os.Rename(from, to) }

// RemoveAll implements Files.
func (LocalFiles) RemoveAll(path string) error { return os.RemoveAll(path) }

// Write implements Files.
func (LocalFiles) Write(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".put-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails when renamed, as it should
	defer f.Close()
	if err := fill(ctx, f, r); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := errors.Join(f.Chmod(mode), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// chunks are write buffers. How a file got into the page cache affects the cost of sending
// it, so all files are written in the same way.
var chunks = sync.Pool{New: func() any { return new([1 << 20]byte) }}

func fill(ctx context.Context, w io.Writer, r io.Reader) error {
	chunk := chunks.Get().(*[1 << 20]byte)
	defer chunks.Put(chunk)
	for {
		n, err := 0, ctx.Err()
		for n < len(chunk) && err == nil {
			var more int
			more, err = r.Read(chunk[n:])
			n += more
		}
		if err != nil && err != io.EOF {
			return err
		}
		if _, err := w.Write(chunk[:n]); err != nil {
			return err
		}
		if err == io.EOF {
			return nil
		}
	}
}

// blockUnit is the unit of st_blocks, whatever the file system's block size.
const blockUnit = 512

// Walk implements Files. WalkDir passes an error if it cannot stat the top, and calls a
// second time for a directory that it cannot read.
func (LocalFiles) Walk(dir string, each func(Entry) error) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = e.Info()
		}
		if err != nil {
			if path != dir && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) {
				return nil // deleted, or replaced by something that is no directory
			}
			return err
		}
		below, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return fmt.Errorf("%s: the file system has no inodes", path)
		}
		return each(Entry{
			Path: below, Mode: info.Mode(), Size: info.Size(), Disk: st.Blocks * blockUnit,
			Device: uint64(st.Dev), Inode: st.Ino,
		})
	})
}

// SupportsXattrs implements Files.
func (LocalFiles) SupportsXattrs(dir string) bool {
	const name = "user.plimsoll"
	return unix.Setxattr(dir, name, []byte("1"), 0) == nil && unix.Removexattr(dir, name) == nil
}

// OnePerMachine returns the first of the hosts on each machine.
func OnePerMachine[H Host](hosts []H) (some []H) {
	seen := map[Machine]bool{}
	for _, h := range hosts {
		if m := h.Machine(); !seen[m] {
			seen[m] = true
			some = append(some, h)
		}
	}
	return some
}

// Stat describes a path without following symbolic links.
func Stat(files Files, path string) (top Entry, err error) {
	err = files.Walk(path, func(e Entry) error {
		top = e
		return fs.SkipAll
	})
	if err == fs.SkipAll {
		err = nil
	}
	return top, err
}

// Run starts a process and waits until it has ended.
func Run(ctx context.Context, h Host, c Command) error {
	p, err := h.Start(ctx, c)
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
		err = p.Err()
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return errors.Join(err, p.Stop(context.WithoutCancel(ctx)))
}

// Follow returns a reader of a file that is still written. It ends after what was there when
// over has returned true.
func Follow(ctx context.Context, file *os.File, over func() bool) io.Reader {
	return &follower{ctx, file, over}
}

type follower struct {
	ctx  context.Context
	file *os.File
	over func() bool
}

func (f *follower) Read(b []byte) (int, error) {
	for last := false; ; last = f.over() {
		n, err := f.file.Read(b)
		if n > 0 || err != io.EOF || last {
			return n, err
		}
		if !timing.Pause(f.ctx, followEvery) {
			return 0, f.ctx.Err()
		}
	}
}

// followEvery is the interval at which a file is checked for more.
const followEvery = 200 * time.Millisecond

// CacheVariable is the environment variable that replaces the user's cache directory.
const CacheVariable = "PLIMSOLL_CACHE"

// CacheDir returns the path of a name in the cache that all runs share. Whoever writes
// there first creates it.
func CacheDir(name string) (string, error) {
	top := os.Getenv(CacheVariable)
	if top == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("testbed: a directory for the cache: %w; set %s to one", err, CacheVariable)
		}
		top = filepath.Join(user, "plimsoll")
	}
	return filepath.Abs(filepath.Join(top, name))
}

// DataDir returns the user's directory of that name for permanent data.
func DataDir(name string) (string, error) {
	top := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(top) { // the XDG specification: relative paths are to be ignored
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("testbed: a directory for data: %w; set XDG_DATA_HOME to one", err)
		}
		top = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(top, "plimsoll", name), nil
}

// LockFile locks a file until unlock is called or the process ends.
func LockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s is locked (%w): another process uses it; try again when that has ended", path, err)
	}
	return func() { f.Close() }, nil
}

// AwaitLock locks a file as soon as no other process has locked it.
func AwaitLock(ctx context.Context, path string) (unlock func(), err error) {
	for {
		if unlock, err = LockFile(path); !errors.Is(err, unix.EWOULDBLOCK) {
			return unlock, err
		}
		if !timing.Pause(ctx, 20*time.Millisecond) {
			return nil, context.Cause(ctx)
		}
	}
}
