package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// recordingRoom is left free for the run directory besides the data.
const recordingRoom = 256 << 20

// checkDisk compares the free space with what the data sets of all systems
// take, with room for a system that keeps a second copy while it imports.
func checkDisk(_ context.Context, cfg Config) []Problem {
	var need float64 = recordingRoom
	for _, use := range cfg.Plan.Experiment.Systems {
		_, bytes := cfg.Scenario.Prepares(cellsOf(cfg.Plan, use.Name))
		need += 2 * float64(bytes)
	}
	free, err := freeBytes(os.TempDir())
	if err != nil {
		return []Problem{{What: fmt.Sprintf("cannot tell the free space of %s: %v", os.TempDir(), err)}}
	}
	if free >= need {
		return nil
	}
	return []Problem{{
		What:     fmt.Sprintf("%s has %.1f GB free, the run's data needs up to %.1f GB", os.TempDir(), free/1e9, need/1e9),
		Hint:     "free some space, set TMPDIR to a larger disk, or make data.size or data.objects smaller",
		Blocking: true,
	}}
}

// freeBytes is the space that an ordinary user may still fill.
func freeBytes(dir string) (float64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return float64(s.Bavail) * float64(s.Bsize), nil
}

// checkDirectory makes sure that a new run overwrites nothing.
func checkDirectory(_ context.Context, cfg Config) []Problem {
	if cfg.Dir == "" || cfg.Resume {
		return nil
	}
	entries, err := os.ReadDir(cfg.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return []Problem{{What: fmt.Sprintf("run directory: %v", err), Blocking: true}}
	case len(entries) == 0:
		return nil
	}
	hint := "choose another directory with --out"
	if _, err := os.Stat(filepath.Join(cfg.Dir, "run.db")); err == nil {
		hint += ", or go on with it: plimsoll resume " + cfg.Dir
	}
	return []Problem{{What: fmt.Sprintf("run directory %s is not empty", cfg.Dir), Hint: hint, Blocking: true}}
}
