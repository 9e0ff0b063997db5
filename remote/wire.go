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
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/testbed/agent"
)

// order is what the engine on the first machine is to do. Of a run that is resumed, its
// directory follows (see writeRun).
type order struct {
	Config      engine.Config // but for what only the engine's machine knows
	Plan        []byte
	Machines    []Machine
	Credentials agent.Credentials // of the engine
}

// Kinds of events: calls of [engine.Progress], and how the run ended.
const (
	started = "start"
	phase   = "phase"
	note    = "note"
	begun   = "begin"
	loading = "load"
	stating = "state"
	ended   = "end"
	lost    = "lost" // a machine, and no other is spare
	over    = "over" // the run
	died    = "died" // the engine, without a word
)

// event is one thing that happens to the engine, as its follower hears it.
type event struct {
	Kind       string
	Text, Hint string // of the run's end: its error, as the terminal shows it
	Code       ui.Code
	Cell       string
	N, Total   int
	Block      int
	Ops, Bytes int64
	At         time.Time // of what comes often
	State      scenario.State
	Trial      record.Trial
	Result     engine.Result
}

// often says whether such events come often, and only the latest counts.
func (e event) often() bool { return e.Kind == loading || e.Kind == stating }

// ending is the end of a run.
func ending(res engine.Result, err error) event {
	e := event{Kind: over, Result: res, Hint: ui.Hint(err), Code: ui.ExitCode(err)}
	if err != nil {
		e.Text = err.Error()
	}
	return e
}

// Names in a run directory that are not carried: what deployments keep for themselves, and
// what SQLite and we hold beside the database and the run.
const (
	nodesDir = "nodes"
	database = "run.db"
	planFile = "plan.json"
	whereIs  = "where.json"
	lockName = ".launcher.lock"
	// endMark is the last entry of a run directory's tar: without it the stream was cut.
	endMark = ".end"
)

func carried(name string) bool {
	return name != nodesDir && name != whereIs && !strings.HasPrefix(name, database+"-") &&
		!strings.HasPrefix(filepath.Base(name), ".")
}

// writeRun writes a run directory as a tar, also while the run goes on: the database, which
// comes last, is a copy of one moment.
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

// addFile adds a file as long as it is now: a log may grow meanwhile.
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

// readRun reads a tar of writeRun into a directory. Each file is replaced as a whole.
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
				return removeJournals(path)
			})
		}
		if err != nil {
			return err
		}
	}
}

// removeJournals removes what SQLite keeps beside a database that is about to be replaced: it would
// turn the new one into the old one.
func removeJournals(path string) error {
	return errors.Join(os.RemoveAll(path+"-wal"), os.RemoveAll(path+"-shm"), os.RemoveAll(path+"-journal"))
}
