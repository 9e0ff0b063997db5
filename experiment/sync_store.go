package experiment

// A node's store by the size of its chain on the wire: at most, roughly. It holds
// the blocks, their supplements, the state and, where something subscribes, an
// index of all addresses, which is the larger part: 10,000 blocks of ten payments,
// 56 MB on the wire, took 86 MB of consensus.db and 272 MB of walletd.sqlite3 and
// its log; 2000 of the first form, 11.6 MB, took 117 MB, as that keeps all unspent
// outputs and the tree of elements, too. Databases grow in steps and are never compacted, so that a small chain
// takes more than its share.
const (
	storeFactor = 11
	storeFloor  = 144 << 20
)

// A RAM disk is larger than the store that it is for: one that is full ends a trial.
const (
	ramFactor = 1.25
	ramMargin = 64 << 20
)

// StoreBytes is about the most that the store of a node takes which has a chain of so
// many bytes on the wire, and an index of it. It is for chains that are not made yet,
// and for systems that do not report it.
func StoreBytes(chain float64) float64 { return storeFloor + storeFactor*chain }

// RAMDiskBytes is the size of a RAM disk for a store that takes at most so many bytes.
func RAMDiskBytes(store float64) float64 { return ramMargin + ramFactor*store }
