package engine

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

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

// checkChains refuses a place where chains cannot be kept.
func checkChains(_ context.Context, cfg Config) []Problem {
	if len(chainCells(cfg.Plan)) == 0 {
		return nil
	}
	dir, err := ChainCache()
	if err != nil {
		return []Problem{{What: err.Error(), Blocking: true}}
	}
	top := existing(dir)
	err = unix.Access(top, unix.W_OK)
	if info, e := os.Stat(top); e == nil && !info.IsDir() {
		err = unix.ENOTDIR
	}
	if err != nil {
		return []Problem{refuse(fmt.Sprintf("chains are kept in %s, and %s cannot be written to: %v", dir, top, err),
			"set "+testbed.CacheVariable+" to a directory of yours")}
	}
	return nil
}
