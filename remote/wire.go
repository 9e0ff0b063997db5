package remote

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/internal/atomicfile"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed/agent"
)

// order is what the engine on the first machine is to do. For a resumed run, its directory follows
// (see writeRun).
type order struct {
	Config      engine.Config // without what only the engine's machine knows
	Plan        []byte
	Machines    []Machine
	Credentials agent.Credentials // for the engine
}

// Kinds of events besides those of the engine.
const (
	kindLost = "lost" // a machine was lost, and no spare is left
	kindOver = "over" // the run ended
	kindDied = "died" // the engine ended without reporting the end of the run
)

// event is one event of the engine, as sent to followers. At the run's end, Text and Hint are its
// error, as printed on the terminal.
type event struct {
	engine.Event
	Hint   string
	Code   ui.Code
	At     time.Time // set for frequent events
	Result engine.Result
}

// often reports whether such events are frequent, so that only the latest is relevant.
func (e event) often() bool { return e.Kind == engine.EventLoad || e.Kind == engine.EventState }

// ending returns the event for the end of a run.
func ending(res engine.Result, err error) event {
	e := event{Event: engine.Event{Kind: kindOver}, Result: res, Hint: ui.Hint(err), Code: ui.ExitCode(err)}
	if err != nil {
		e.Text = err.Error()
	}
	return e
}

// Names in a run directory that are not copied: the files of deployments, and files that SQLite and
// we keep beside the database and the run.
const (
	nodesDir = "nodes"
	database = "run.db"
	planFile = "plan.json"
	whereIs  = "where.json"
	lockName = ".launcher.lock"
	// endMark is the last entry in the tar of a run directory. If it is missing, the stream was
	// cut.
	endMark = ".end"
)

func carried(name string) bool {
	return name != nodesDir && name != whereIs && !strings.HasPrefix(name, database+"-") &&
		!strings.HasPrefix(filepath.Base(name), ".")
}

// writeRun writes a run directory as a tar, even while the run continues: the database, which is
// the last file, is a consistent snapshot.
func writeRun(w io.Writer, dir string) error {
	t, tree := tar.NewWriter(w), os.DirFS(dir)
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || name == "." || name == database:
			return err
		case carried(name):
			return addFile(t, tree, name, d)
		case d.IsDir():
			return fs.SkipDir
		}
		return nil
	})
	if err == nil && exists(dir, database) {
		err = addDatabase(t, dir)
	}
	if err == nil {
		err = t.WriteHeader(&tar.Header{Name: endMark, Mode: 0o600})
	}
	return errors.Join(err, t.Close())
}

func addDatabase(t *tar.Writer, dir string) error {
	tmp, err := os.MkdirTemp("", "plimsoll-snapshot-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := record.Snapshot(dir, filepath.Join(tmp, database)); err != nil {
		return err
	}
	return t.AddFS(os.DirFS(tmp))
}

// addFile adds a file with its current length: a log may grow meanwhile.
func addFile(t *tar.Writer, tree fs.FS, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || !d.IsDir() && !info.Mode().IsRegular() {
		return err
	}
	head, err := tar.FileInfoHeader(info, "")
	if err != nil {
		return err
	}
	head.Name = name
	if d.IsDir() {
		head.Name += "/"
		return t.WriteHeader(head)
	}
	f, err := tree.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := t.WriteHeader(head); err != nil {
		return err
	}
	_, err = io.CopyN(t, f, head.Size)
	return err
}

// readRun reads a tar from writeRun into a directory. It replaces each file atomically.
func readRun(r io.Reader, dir string) error {
	whole := false
	for t := tar.NewReader(r); ; {
		head, err := t.Next()
		if err == io.EOF && !whole {
			return io.ErrUnexpectedEOF
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if head.Name == endMark {
			whole = true
			continue
		}
		if !filepath.IsLocal(head.Name) || !carried(filepath.Clean(head.Name)) {
			return errors.New("a run directory with a file " + head.Name)
		}
		path := filepath.Join(dir, head.Name)
		if head.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = atomicfile.Write(path, func(w io.Writer) error {
				if _, err := io.Copy(w, t); err != nil || head.Name != database {
					return err
				}
				// SQLite's files beside the old database would restore its content in the new one.
				return errors.Join(os.RemoveAll(path+"-wal"), os.RemoveAll(path+"-shm"), os.RemoveAll(path+"-journal"))
			})
		}
		if err != nil {
			return err
		}
	}
}
