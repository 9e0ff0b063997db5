package upload

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/plimsoll-project/plimsoll/workload"
)

// manifestFile is where the manifest of the trial's directory is kept; empty
// where there is nothing to keep. One trial of a cell goes on at a time.
func (t *trial) manifestFile() (*workload.Directory, string) {
	d, ok := t.set.(*workload.Directory)
	if !ok || t.site.Kept == "" {
		return nil, ""
	}
	return d, filepath.Join(t.site.Kept, t.cell.ID+".manifest.zst")
}

// keepManifest writes down the files of a directory that is uploaded, so that a
// later session can say which of them have changed.
func (t *trial) keepManifest() error {
	d, path := t.manifestFile()
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(t.site.Kept, 0o755); err != nil {
		return err
	}
	return d.Manifest().WriteFile(path)
}

// changedFiles says how the directory differs from the one that the trial began
// with, and what can be done about it; empty where that is not known.
func (t *trial) changedFiles() (how, hint string) {
	d, path := t.manifestFile()
	if path == "" {
		return "", ""
	}
	before, err := workload.ReadManifestFile(path)
	if err != nil {
		return "it is not known which files have changed: " + err.Error(), ""
	}
	changes := before.Diff(d.Manifest())
	if changes.None() {
		return "", ""
	}
	if changes.OnlyTimes() {
		hint = "only times differ: where the content is the same, give the files their times back (" + changes.Touch() + ") and resume again"
	}
	return changes.String(), hint
}

// DataChangedError is a data set that is not the one that a trial began with: a
// session cannot go on with it.
type DataChangedError struct {
	System string
	How    string
	hint   string
}

func (e *DataChangedError) Error() string {
	return fmt.Sprintf("%s: the data set has changed since the trial began: %s", e.System, e.How)
}

// Hint implements the interface that the terminal asks for hints.
func (e *DataChangedError) Hint() string { return e.hint }
