// Package record stores what a run measured (operations, samples of processes, link checks
// and events) in one crash-safe directory that can still be understood years later.
//
// A [Run] writes; a [Reader] reads, also while the run is still writing, on
// another machine, or from read-only media. Between them lies run.db, whose
// schema is documented in docs/run-db.md.
//
// Durability: [Create], [Run.Begin], [TrialWriter.End], [Run.Event] and [Run.Meta] return once
// their data is on the disk. [TrialWriter.Jobs] returns once the kernel has the data: killing the
// process loses nothing, and a power cut at most the last ten seconds. Operations, polls,
// samples, link checks and the events of trials are written about once a second; killing the
// process loses at most the last of them, and only of trials that had not ended.
//
// A trial that was running is executed again when its run is resumed, unless it is a long one
// that should continue: [Resume], [Run.Continue].
package record

import (
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

const (
	planFile = "plan.json"
	dbFile   = "run.db"

	// LogsDir has the logs of processes in a run directory. The logs of a run that could
	// not begin stay, and do not prevent another run from using the directory.
	LogsDir = "logs"
)

// ErrLocked is wrapped if another process is writing the run.
var ErrLocked = errors.New("another process is writing this run")

// lockDir locks the run directory for writing, until the file is closed or the process
// ends. The lock is on the directory itself, so no file is left behind.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	// A reader may briefly hold the lock, see Written.
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(lockPatience / 20) {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			break
		}
	}
	if err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, fmt.Errorf("lock: %w", err)
	}
	return f, nil
}

const lockPatience = 200 * time.Millisecond

// Written reports whether a process has the run in dir open for writing. The kernel releases
// the lock when that process is killed.
func Written(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close() // and with it the lock
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// openDatabase opens the database of a run directory with a maximum number of connections.
func openDatabase(dir string, connections int, query url.Values) (*sql.DB, error) {
	path, err := filepath.Abs(filepath.Join(dir, dbFile))
	if err != nil {
		return nil, err
	}
	query["_pragma"] = append([]string{"busy_timeout(10000)"}, query["_pragma"]...)
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+query.Encode())
	if err != nil {
		return nil, explain(dir, err)
	}
	db.SetMaxOpenConns(connections)
	return db, nil
}

// syncFile flushes a file's content, or a directory's entries, to the disk.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// WriteError is why nothing more can be recorded in a run directory.
type WriteError struct {
	Dir  string
	Full bool // the disk is full, or the user's quota is exhausted
	Gone bool // the directory or run.db was removed or replaced
	Err  error
}

func (e *WriteError) Error() string {
	what := "cannot write"
	if e.Full {
		what = "disk full"
	}
	if e.Gone {
		return fmt.Sprintf("record: %s: %v; nothing more can be recorded", e.Dir, e.Err)
	}
	return fmt.Sprintf("record: %s: %s (%s free): %v", e.Dir, what, freeSpace(e.Dir), e.Err)
}

func (e *WriteError) Unwrap() error { return e.Err }

// Hint says what the user can do.
func (e *WriteError) Hint() string {
	switch {
	case e.Full:
		return "free some space, or choose a directory on another disk"
	case e.Gone:
		return "start a new run, and leave its directory in place until it has ended"
	}
	return "check the disk, the quota and the limit on the size of files"
}

// explain turns an error of the file system into a [WriteError].
func explain(dir string, err error) error {
	var known *WriteError
	if err == nil || errors.As(err, &known) {
		return err
	}
	var se *sqlite.Error
	full := errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) ||
		errors.As(err, &se) && se.Code()&0xff == sqlite3.SQLITE_FULL
	broken := errors.As(err, &se) && se.Code()&0xff == sqlite3.SQLITE_IOERR
	switch {
	case full, broken:
		return &WriteError{Dir: dir, Full: full, Err: err}
	case errors.Is(err, fs.ErrPermission), errors.As(err, &se) && se.Code()&0xff == sqlite3.SQLITE_READONLY:
		return fmt.Errorf("record: %s: not writable: %w", dir, err)
	}
	return fmt.Errorf("record: %s: %w", dir, err)
}

// check checks that run.db is still the file that was opened: if it was removed or replaced,
// everything written is lost.
func (r *Run) check() error {
	why := ""
	switch now, err := os.Stat(filepath.Join(r.dir, dbFile)); {
	case errors.Is(err, fs.ErrNotExist):
		why = "removed"
	case err == nil && !os.SameFile(r.file, now):
		why = "replaced"
	default:
		return nil // other problems show when something is written
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fail(&WriteError{Dir: r.dir, Gone: true, Err: fmt.Errorf("%s was %s during the run", dbFile, why)})
}

func freeSpace(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "unknown space"
	}
	return words.Bytes(float64(st.Bavail) * float64(st.Bsize))
}

// schemaVersion is stored in meta under keySchema: only such runs are read. No other version was released.
const schemaVersion = 7

// Keys of the package itself in meta.
const (
	keySchema = "record.schema"      // schemaVersion
	KeyPlan   = "record.plan_sha256" // of the bytes of plan.json
	keyID     = "record.id"          // see Reader.ID
)

//go:embed schema.sql
var schema string

// ofTrial are the tables with the records of trials, besides the table trials.
var ofTrial = [...]string{"results", "counts", "details", "summaries", "histograms", "ops", "windows", "samples",
	"links", "events", "jobs", "polls", "marks"}
