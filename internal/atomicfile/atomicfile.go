// Package atomicfile writes files that are either complete or absent.
package atomicfile

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Write creates or replaces path with the output of write. Readers see the old file or the new one,
// never a part; after an error the old file is unchanged.
func Write(path string, write func(io.Writer) error) error {
	f, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o644), renameio.WithTempDir(filepath.Dir(path)))
	if err == nil {
		defer f.Cleanup()
		if err = write(f); err == nil {
			err = f.CloseAtomicallyReplace()
		}
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
