package tahoe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
)

// holdings walks the directories of shares. An object is a storage index,
// whose shares lie in shares/PR/INDEX/ of one or more storage nodes.
func (g *grid) holdings() (system.Holdings, error) {
	roots := g.shareDirs()
	h, err := disk.Usage(roots...)
	if err != nil {
		return h, fmt.Errorf("tahoe: %w", err)
	}
	if h.Objects, err = indexes(roots); err != nil {
		return h, fmt.Errorf("tahoe: %w", err)
	}
	return h, nil
}

// shareDirs are the directories of the storage nodes below which shares lie.
func (g *grid) shareDirs() []string {
	var roots []string
	for _, dir := range g.dirs {
		roots = append(roots, filepath.Join(dir, "storage", "shares"))
	}
	return roots
}

// incoming is the directory in shares/ for what is not stored yet.
const incoming = "incoming"

// indexes counts the storage indexes that have shares, in a directory PR/INDEX
// below any of roots; PR is the index's first two characters. A storage node
// that was killed may leave the directory of a share that never came.
func indexes(roots []string) (int64, error) {
	seen := map[string]bool{}
	for _, root := range roots {
		prefixes, err := os.ReadDir(root)
		if err != nil {
			return 0, err
		}
		for _, p := range prefixes {
			if p.Name() == incoming || !p.IsDir() {
				continue
			}
			all, err := os.ReadDir(filepath.Join(root, p.Name()))
			if errors.Is(err, fs.ErrNotExist) {
				continue // its last index was removed meanwhile
			}
			if err != nil {
				return 0, err
			}
			for _, index := range all {
				if seen[index.Name()] {
					continue
				}
				shares, err := os.ReadDir(filepath.Join(root, p.Name(), index.Name()))
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					return 0, err
				}
				if len(shares) > 0 {
					seen[index.Name()] = true
				}
			}
		}
	}
	return int64(len(seen)), nil
}
