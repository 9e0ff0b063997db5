package chain

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"
)

// file is a database file that may be damaged.
type file struct {
	db *bbolt.DB
	f  *os.File // the library loses it, and its lock, where it panics in opening
}

// open opens the database at path. It panics on some damage: see guard.
func (f *file) open(path string, o *bbolt.Options) error {
	o.OpenFile = func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
		f.f, err = os.OpenFile(name, flag, mode)
		return f.f, err
	}
	db, err := bbolt.Open(path, 0o600, o)
	var missing *fs.PathError
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return ErrLocked
	case errors.As(err, &missing): // or not permitted
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	f.db = db
	return nil
}

// whole compares the database's size with the file's.
func (f *file) whole() error {
	return f.db.View(func(tx *bbolt.Tx) error {
		info, err := f.f.Stat()
		if err == nil && info.Size() < tx.Size() {
			err = fmt.Errorf("%w: it has %d bytes of %d", ErrDamaged, info.Size(), tx.Size())
		}
		return err
	})
}

// abandon closes a file that nothing is to be written to any more.
func (f *file) abandon() {
	if f.db != nil {
		f.db.Close()
	}
	if f.f != nil {
		// its mapping, which is lost when opening panics, would keep the lock
		unix.Flock(int(f.f.Fd()), unix.LOCK_UN)
		f.f.Close()
	}
}

// guard runs do, which reads the database file at path. The library panics on
// some damage, and reading behind the end of a mapped file is a fault: both become
// [ErrDamaged]. Errors name the file.
func guard(path string, do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, r)
		}
		switch {
		case errors.Is(err, ErrDamaged):
			err = fmt.Errorf("sia-chain: %s: %w (the file is kept as it is; remove it to start from nothing)", path, err)
		case err != nil:
			err = fmt.Errorf("sia-chain: %s: %w", path, err)
		}
	}()
	return do()
}
