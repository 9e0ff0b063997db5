package system

import (
	"context"
	"io"
	"math/big"
	"time"
)

// abilities are the words of Info.Can that a node's type says, in their order of
// display. Info.Can has them before anything is started, and beside them those of
// the protocol (https, h2, car) and "fresh" where every operation connects anew; the
// conformance suite holds the two together.
var abilities = []struct {
	word string
	has  func(Node) bool
}{
	{"http", is[HTTPServer]},
	{"put", is[Store]},
	{"range", is[Ranger]},
	{"delete", is[Deleter]},
	{"list", is[Lister]},
	{"stat", is[Stater]},
	{"update", is[Updater]},
	{"directory", is[Directory]},
	{"durable", is[Settler]},
	{"cold", is[Cooler]},
	{"fresh", is[Redialer]},
	{"stats", is[Stats]},
	{"phases", is[Phaser]},
	{"cost", is[Coster]},
	{"monitor", is[Monitored]},
	{"spread", is[Member]},
	{"restart", is[Restarter]},
	{"follow", is[Follower]},
}

func is[T any](n Node) bool {
	_, ok := n.(T)
	return ok
}

// Abilities are the words of Info.Can that the type of n says.
func Abilities(n Node) []string {
	var words []string
	for _, a := range abilities {
		if a.has(n) {
			words = append(words, a.word)
		}
	}
	return words
}

// Redialer is a node whose client can be made to connect anew. After Redial the
// next operation begins with fresh connections, sessions included. A node whose
// every operation does so anyway says so in Identity ("connections": "fresh").
type Redialer interface {
	Redial(ctx context.Context) error
}

// Stater is a node that asks the servers about an object without its bytes.
type Stater interface {
	Stat(ctx context.Context, ref Ref) (Object, error)
}

// Updater is a node with objects whose content can be replaced under the same
// ref: mutable files, overwritten keys. Those of [PutMutable] can be. A ref of nothing may
// be an error, or become an object.
type Updater interface {
	Update(ctx context.Context, ref Ref, size int64, r io.Reader) error
}

// MutablePutter is an [Updater] whose objects of Put cannot be replaced.
type MutablePutter interface {
	PutMutable(ctx context.Context, name string, size int64, r io.Reader) (Ref, error)
}

// PutMutable stores an object on an [Updater] that can be updated.
func PutMutable(ctx context.Context, n Store, name string, size int64, r io.Reader) (Ref, error) {
	if m, ok := n.(MutablePutter); ok {
		return m.PutMutable(ctx, name, size, r)
	}
	return n.Put(ctx, name, size, r)
}

// Directory is a node whose directories are objects of their own, so that
// entering an object into one costs more than storing it.
type Directory interface {
	MakeDirectory(ctx context.Context, name string) (Ref, error)
	// PutIn stores an object and enters it into dir.
	PutIn(ctx context.Context, dir Ref, name string, size int64, r io.Reader) (Ref, error)
}

// Settler is a node on which accepted is not yet durable. Settle returns once
// the object has its full redundancy; ctx bounds the wait.
type Settler interface {
	Settle(ctx context.Context, ref Ref) error
}

// Cooler is a node that may keep near the client what it stored or read. Cool
// makes it forget the object, and proves it: the next Get crosses the link.
// Its error wraps ErrWarm when the object would still be served from near.
type Cooler interface {
	Cool(ctx context.Context, ref Ref) error
}

// Stats is a node that says what the storage servers of its whole cluster hold.
type Stats interface {
	Stats(ctx context.Context) (Holdings, error)
}

// Holdings is what storage servers hold. A field that the system does not tell
// is −1.
type Holdings struct {
	Objects  int64 // as the system counts them
	Absolute int64 // bytes sent to or kept by storage nodes: padding, metadata and redundancy included
	Disk     int64 // bytes of disk blocks taken, directories included
	Entries  int64 // directory entries
	Inodes   int64
}

// Coster is a node that pays for what it does.
type Coster interface {
	Costs(ctx context.Context) (Costs, error)
}

// Costs are amounts of money in a currency's smallest unit; 10^Decimals of them
// make one of Currency (Sia: hastings, 24). Nil: the system does not tell.
type Costs struct {
	Currency string // "SC"
	Decimals int
	Spent    []Spending // by purpose, as the system names it
}

// Spending is what was spent for one purpose: "upload", "storage", "fees".
type Spending struct {
	Purpose string
	Amount  *big.Int
}

// Phaser is a node whose system keeps an account of where the time of an
// operation went. Phases is that of the latest operation through this node, in
// the system's order and words.
type Phaser interface {
	Phases(ctx context.Context) ([]Phase, error)
}

// Phase is one entry of such an account. Phases may overlap: they need not add up.
type Phase struct {
	Name string
	Took time.Duration
}

// Namer is a node whose Put gives a ref that depends on the name alone, so that
// what became of a Put can be found out without listing everything.
type Namer interface {
	Named(name string) Ref
}

// Adopter is a node that removes and overwrites nothing but what it has put
// there. Adopt names an object, by its ref and size, that an earlier session
// of ours, or a Put that seemed to fail, has left.
type Adopter interface {
	Adopt(o Object)
}
