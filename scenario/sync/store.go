package sync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// classDamaged is the class of a node that does not start on its store because that is
// damaged.
const classDamaged = "store damaged"

// damaged reports whether an error of Follow is about the store in dir: one that is
// damaged is an error that names it (see system.Follower).
func damaged(err error, dir string) bool { return dir != "" && strings.Contains(err.Error(), dir) }

// keptStores is how many stores a session keeps: a node that dies in every trial would
// fill the disk.
const keptStores = 3

// keep moves the store of a node that did not start on it, or that ended by itself, to
// where it can be looked at. It says whether it stays where it is, because that failed.
func (t *trial) keep() (stays bool) {
	class := t.fresh.Class
	if class != classDamaged && class != nodes.ClassDied && class != nodes.ClassAgain {
		return false
	}
	if t.kept == keptStores {
		t.Event("note", "store not kept", fmt.Sprintf("%d stores are kept already", keptStores), t.Now(), 0)
		return false
	}
	t.kept++
	begun := t.Now()
	dir := filepath.Join(t.site.Dir, "stores")
	if t.site.Kept != "" {
		dir = filepath.Join(t.site.Kept, "stores")
	}
	err := os.MkdirAll(dir, 0o755)
	to := ""
	if err == nil {
		name := fmt.Sprintf("%s-%s-", t.cell.ID, strings.ReplaceAll(record.BlockName(t.Sink.Number), " ", "-"))
		if to, err = os.MkdirTemp(dir, name); err == nil && os.Rename(t.store.Path, to) != nil { // it is in memory, or on another disk
			err = testbed.Fetch(context.Background(), t.store.Files, t.store.Path, to)
		}
	}
	if err != nil {
		t.Event("error", "store not kept", t.store.Path+": "+scenario.ShortError(err), t.Now(), 0)
		return t.s.Storage != "ram" // memory is given back
	}
	t.Event("note", "store kept", fmt.Sprintf("the store of %s is in %s", t.fresh.Name, to), begun, t.Now()-begun)
	return false
}

// empty removes everything that is in a store.
func empty(s scenario.StoreDir) error {
	var all []string
	err := s.Files.Walk(s.Path, func(e testbed.Entry) error {
		if e.Path != "." && !strings.Contains(e.Path, "/") {
			all = append(all, e.Path)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return s.Files.MkdirAll(s.Path, 0o755)
	}
	for _, name := range all {
		err = errors.Join(err, s.Files.RemoveAll(filepath.Join(s.Path, name)))
	}
	return err
}
