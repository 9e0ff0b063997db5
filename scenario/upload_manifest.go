package scenario

import (
	"os"
	"path/filepath"

	"github.com/plimsoll-project/plimsoll/workload"
)

// manifestFile is where the manifest of the trial's directory is kept; empty
// where there is nothing to keep. One trial of a cell goes on at a time.
func (t *uploadTrial) manifestFile() (*workload.Directory, string) {
	d, ok := t.set.(*workload.Directory)
	if !ok || t.site.Kept == "" {
		return nil, ""
	}
	return d, filepath.Join(t.site.Kept, t.cell.ID+".manifest.zst")
}

// keepManifest writes down the files of a directory that is uploaded, so that a
// later session can say which of them have changed.
func (t *uploadTrial) keepManifest() error {
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
// with; empty where that is not known.
func (t *uploadTrial) changedFiles() string {
	d, path := t.manifestFile()
	if path == "" {
		return ""
	}
	before, err := workload.ReadManifestFile(path)
	if err != nil {
		return "which files have changed cannot be told: " + err.Error()
	}
	if changes := before.Diff(d.Manifest()); !changes.None() {
		return changes.String()
	}
	return ""
}
