package chain

import "runtime/debug"

// format is the version of what this package makes: of the blocks that follow from
// a spec, and of the files. It rises when either changes.
const format = 1

// Versions are those of the libraries whose code decides what a chain is and how
// it is stored. Unknown in programs without build information.
type Versions struct {
	Core      string `json:"core"`      // go.sia.tech/core: consensus
	Coreutils string `json:"coreutils"` // go.sia.tech/coreutils: the store
	Database  string `json:"database"`  // go.etcd.io/bbolt: the file
}

// Libraries are the versions that this program was built with.
func Libraries() Versions {
	v := Versions{"unknown", "unknown", "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, m := range info.Deps {
		version := m.Version
		if m.Replace != nil {
			version = m.Replace.Path + " " + m.Replace.Version
		}
		switch m.Path {
		case "go.sia.tech/core":
			v.Core = version
		case "go.sia.tech/coreutils":
			v.Coreutils = version
		case "go.etcd.io/bbolt":
			v.Database = version
		}
	}
	return v
}
