package boxo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ipfs/boxo/blockservice"
	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/boxo/ipld/unixfs"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"
	"github.com/libp2p/go-libp2p/core/network"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// download is a content that a node has or fetches.
type download struct {
	member.Background
	node *node
	root cid.Cid
	from []string // guarded by node.mu
	done chan struct{}

	mu             sync.Mutex
	size, verified int64
	complete       bool
	trouble        string
	received, sent uint64 // of the node when it began
}

// begin walks the content's graph, in the node's store and then in the swarm,
// until all of it is there.
func (d *download) begin() {
	d.done = make(chan struct{})
	d.received, d.sent = d.node.traffic()
	d.Begin(d.keepWalking, d.keepConnected)
}

// imported takes the place of begin for a content that was just written.
func (d *download) imported(size int64) {
	d.done = make(chan struct{})
	close(d.done)
	d.received, d.sent = d.node.traffic()
	d.size, d.verified, d.complete = size, size, true
}

func (d *download) keepWalking(ctx context.Context) {
	defer close(d.done)
	for {
		err := d.walk(ctx)
		d.note(err)
		if err == nil || !member.Sleep(ctx, redial) { // what keeps it may pass
			return
		}
	}
}

func (d *download) keepConnected(ctx context.Context) {
	for member.Sleep(ctx, redial) {
		select {
		case <-d.done:
			return
		default:
			d.redial()
		}
	}
}

func (d *download) note(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.complete = err == nil; d.complete {
		d.verified, d.trouble = d.size, ""
	} else {
		d.trouble = err.Error()
	}
}

// redial keeps it connected to the peers that it knows.
func (d *download) redial() {
	d.node.mu.Lock()
	peers := slices.Clone(d.from)
	d.node.mu.Unlock()
	for _, a := range peers {
		d.node.wg.Go(func() { d.node.dial(a) }) // tried again
	}
}

// walk gets all blocks, as merkledag.FetchGraph does, and counts them: it returns
// nil when all have been there and good, in the store or from the swarm.
func (d *download) walk(ctx context.Context) error {
	d.mu.Lock()
	again := d.verified
	d.mu.Unlock()
	var now int64
	dag := merkledag.NewSession(ctx, merkledag.NewDAGService(blockservice.New(d.node.store, d.node.exchange)))
	seen := cid.NewSet()
	links := func(ctx context.Context, c cid.Cid) ([]*ipld.Link, error) {
		node, err := dag.Get(ctx, c)
		if err != nil {
			return nil, err
		}
		size, own, err := payload(node)
		if err != nil {
			return nil, fmt.Errorf("block %s: %w", c, err)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if c.Equals(d.root) {
			d.size = size
		}
		now += own
		d.verified = min(max(again, now), max(d.size, 0))
		return node.Links(), nil
	}
	return merkledag.Walk(ctx, links, d.root, seen.Visit, merkledag.Concurrent())
}

// payload is how many bytes of a file there are below a node, and how many in it.
func payload(node ipld.Node) (size, own int64, err error) {
	switch node := node.(type) {
	case *merkledag.RawNode:
		n := int64(len(node.RawData()))
		return n, n, nil
	case *merkledag.ProtoNode:
		file, err := unixfs.FSNodeFromBytes(node.Data())
		if err != nil {
			return 0, 0, err
		}
		return int64(file.FileSize()), int64(len(file.Data())), nil
	}
	return 0, 0, errors.New("no part of a file")
}

// traffic is what the node received and sent of blocks since it started, bytes.
func (m *node) traffic() (received, sent uint64) {
	s, err := m.exchange.Stat()
	if err != nil {
		return 0, 0 // it never fails
	}
	return s.DataReceived, s.DataSent
}

func (d *download) fetched() (system.Progress, error) {
	received, sent := d.node.traffic()
	d.mu.Lock()
	defer d.mu.Unlock()
	f := system.Progress{
		Size: d.size, Verified: d.verified, Written: d.verified, Complete: d.complete,
		Received: int64(received - d.received), Sent: int64(sent - d.sent), Trouble: d.trouble,
	}
	for _, p := range d.node.host.Network().Peers() {
		if d.node.host.Network().Connectedness(p) == network.Connected {
			f.Peers++
		}
	}
	if f.Trouble == "" && !f.Complete && f.Peers == 0 {
		f.Trouble = "no peers"
	}
	return f, nil
}
