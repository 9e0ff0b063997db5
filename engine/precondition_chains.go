package engine

import (
	"fmt"
	"os"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// Values of sync.storage.
const (
	diskStorage = "disk"
	ramStorage  = "ram"
)

// checkStorage refuses to compare a RAM disk with a "disk" that is in memory itself,
// as the directory for temporary files is on some machines.
func checkStorage(cfg Config, at nodePlace) []Problem {
	disk, ram := false, false
	for _, c := range chainCells(cfg.Plan) {
		disk, ram = disk || c.Sync.Storage == diskStorage, ram || c.Sync.Storage == ramStorage
	}
	if !disk {
		return nil
	}
	on, err := at.Filesystem(os.TempDir())
	if err != nil {
		return []Problem{{What: fmt.Sprintf("storage: disk: %v", err)}}
	}
	return memoryForDisk(on, os.TempDir(), ram)
}

// memoryForDisk is the problem when the "disk" is in memory.
func memoryForDisk(on testbed.Filesystem, dir string, compared bool) []Problem {
	if !on.Memory() {
		return nil
	}
	what := fmt.Sprintf("storage: disk: the stores are made in %s, which is %s, in memory: nothing of it is about a "+
		"disk", dir, on)
	if compared {
		what += ", and disk against ram means nothing"
	}
	return []Problem{{What: what, Hint: "set TMPDIR to a directory on a disk", Blocking: compared}}
}
