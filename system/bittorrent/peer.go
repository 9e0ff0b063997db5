package bittorrent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/anacrolix/torrent"
	"github.com/anacrolix/torrent/metainfo"

	"github.com/plimsoll-project/plimsoll/system"
)

// hash is an info-hash (BEP 3).
type hash = metainfo.Hash

// parse reads an info-hash in the one form that is a ref: 40 digits, lower case.
func parse(ref string) (h hash, err error) {
	if err := h.FromHexString(ref); err != nil {
		return h, err
	}
	if h.HexString() != ref {
		return h, errors.New("hex digits in upper case")
	}
	return h, nil
}

func hashOf(info []byte) hash { return metainfo.HashBytes(info) }

func dirOf(path string) string { return filepath.Dir(path) }

// redial is how often the peers that an incomplete torrent was told of are
// dialled again when they are not connected. The library forgets the address of
// a peer that is gone; a tracker would give it again.
const redial = 2 * time.Second

// Files of a torrent, in a directory of its own named by the info-hash.
const (
	contentFile = "content"
	taskFile    = "task.json"
)

// peer is the library's client and what it was told.
type peer struct {
	config
	cl   *torrent.Client
	done *completion
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu    sync.Mutex
	tasks map[hash]*held
	known []string // peers for every torrent
}

// held is a torrent of this peer.
type held struct {
	task
	t *torrent.Torrent
}

func openPeer(ctx context.Context, c config) (*peer, error) {
	p := &peer{config: c, tasks: map[hash]*held{}}
	p.done = &completion{dir: c.dir, of: map[hash]*pieces{}}
	var err error
	if p.cl, err = c.client(p.done); err != nil {
		return nil, fmt.Errorf("listen for peers at %s: %w", c.listen, err)
	}
	ctx, p.stop = context.WithCancel(ctx)
	if err := p.resume(); err != nil {
		p.close()
		return nil, err
	}
	p.wg.Go(func() { p.redial(ctx) })
	return p, nil
}

func (p *peer) close() {
	p.stop()
	p.wg.Wait()
	if err := errors.Join(p.cl.Close()...); err != nil {
		p.log.Error("close", slog.Any("error", err))
	}
}

// resume takes up what an earlier process left. All files are checked anew.
func (p *peer) resume() error {
	paths, err := filepath.Glob(filepath.Join(p.dir, "*", taskFile))
	if err != nil {
		return err
	}
	for _, path := range paths {
		h, err := parse(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue // not ours
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var t task
		if err := json.Unmarshal(b, &t); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := p.fetch(h, t); err != nil {
			return err
		}
	}
	return nil
}

// redial keeps telling incomplete torrents of their peers.
func (p *peer) redial(ctx context.Context) {
	tick := time.NewTicker(redial)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p.mu.Lock()
		for _, h := range p.tasks {
			if !h.t.Complete().Bool() {
				p.tell(h)
			}
		}
		p.mu.Unlock()
	}
}

// tell gives a torrent its peers.
func (p *peer) tell(h *held) {
	var peers []torrent.PeerInfo
	for _, a := range slices.Concat(h.From, p.known) {
		if at, err := netip.ParseAddrPort(a); err == nil && a != p.listen {
			peers = append(peers, torrent.PeerInfo{Addr: net.TCPAddrFromAddrPort(at), Source: torrent.PeerSourceDirect, Trusted: true})
		}
	}
	h.t.AddPeers(peers)
}

func (p *peer) connect(address string) error {
	if _, err := netip.ParseAddrPort(address); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.known, address) {
		p.known = append(p.known, address)
	}
	for _, h := range p.tasks {
		p.tell(h)
	}
	return nil
}

func (p *peer) health() error {
	select {
	case <-p.cl.Closed():
		return errors.New("the client is closed")
	default:
		return nil
	}
}

func (p *peer) at(h hash, file string) string { return filepath.Join(p.dir, h.HexString(), file) }

// fetch adds a torrent, or more peers and the metainfo to one that is there.
func (p *peer) fetch(h hash, t task) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, there := p.tasks[h]
	if !there {
		now = &held{}
	}
	for _, a := range t.From {
		if !slices.Contains(now.From, a) {
			now.From = append(now.From, a)
		}
	}
	if len(now.Info) == 0 {
		now.Info = t.Info
	}
	if err := p.save(h, now); err != nil {
		return err
	}
	if err := p.add(h, now); err != nil {
		return err
	}
	p.tell(now)
	return nil
}

// add hands a torrent to the library, which fetches all of it.
func (p *peer) add(h hash, now *held) error {
	t, fresh, err := p.cl.AddTorrentSpec(&torrent.TorrentSpec{AddTorrentOpts: torrent.AddTorrentOpts{InfoHash: h, InfoBytes: now.Info}})
	if err != nil {
		return fmt.Errorf("%s: %w", h, err)
	}
	now.t = t
	p.tasks[h] = now
	if !fresh {
		return nil
	}
	if t.Info() != nil {
		t.DownloadAll()
		return nil
	}
	p.wg.Go(func() {
		select {
		case <-t.GotInfo():
		case <-t.Closed():
			return
		}
		t.DownloadAll()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.tasks[h] != now {
			return // forgotten meanwhile
		}
		now.Info = t.Metainfo().InfoBytes
		if err := p.save(h, now); err != nil {
			p.log.Error("keep the metainfo", slog.String("torrent", h.HexString()), slog.Any("error", err))
		}
	})
	return nil
}

// save keeps a task on disk.
func (p *peer) save(h hash, t *held) error {
	b, err := json.Marshal(t.task)
	if err != nil {
		return err
	}
	path := p.at(h, taskFile)
	if err := os.MkdirAll(dirOf(path), 0o755); err != nil {
		return err
	}
	return writeWhole(path, b)
}

// of is a torrent that this peer was told of. The lock is the caller's.
func (p *peer) of(h hash) (*held, error) {
	t, ok := p.tasks[h]
	if !ok {
		return nil, fmt.Errorf("%s: %w", h, system.ErrNotFound)
	}
	return t, nil
}

// counts are the library's, and whether the last piece, which may be shorter than
// the others, is among those that are complete.
func (h *held) counts() (s torrent.TorrentStats, last bool) {
	have := func() bool {
		info := h.t.Info()
		return info != nil && h.t.PieceState(info.NumPieces()-1).Complete
	}
	for last = have(); ; last = !last {
		if s = h.t.Stats(); have() == last {
			return s, last
		}
	}
}

// fetched is how far a torrent is. The library keeps all of it as counts.
func (p *peer) fetched(h hash) (system.Progress, error) {
	f := system.Progress{Size: -1}
	p.mu.Lock()
	t, err := p.of(h)
	p.mu.Unlock()
	if err != nil {
		return f, err
	}
	stats, last := t.counts()
	f.Received, f.Sent, f.Peers = stats.BytesReadData.Int64(), stats.BytesWrittenData.Int64(), stats.ActivePeers
	info := t.t.Info()
	if info == nil {
		f.Trouble = "no peer has given the metainfo"
		return f, nil
	}
	f.Size = info.TotalLength()
	// Whole pieces: the library's own count includes what is not checked yet.
	f.Verified = min(int64(stats.PiecesComplete)*info.PieceLength, f.Size)
	if n := info.NumPieces(); last && stats.PiecesComplete < n {
		f.Verified -= info.PieceLength - info.Piece(n-1).Length()
	}
	f.Written = f.Verified // a piece is read back from its file to be checked
	f.Complete = f.Verified == f.Size && t.t.Complete().Bool()
	if !f.Complete && f.Peers == 0 {
		f.Trouble = "no peers"
	}
	return f, nil
}

// open is the file as it is.
func (p *peer) open(h hash) (*os.File, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.of(h); err != nil {
		return nil, err
	}
	f, err := os.Open(p.at(h, contentFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: no piece has been written: %w", h, system.ErrNotFound)
	}
	return f, err
}

// stream writes the content in order, as it comes.
func (p *peer) stream(ctx context.Context, h hash, to func(size int64) io.Writer) error {
	p.mu.Lock()
	t, err := p.of(h)
	p.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case <-t.t.GotInfo():
	case <-t.t.Closed():
		return fmt.Errorf("%s: %w", h, system.ErrNotFound)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	r := t.t.NewReader()
	defer r.Close()
	r.SetContext(ctx)
	_, err = io.Copy(to(t.t.Length()), r)
	if err != nil {
		panic(http.ErrAbortHandler) // the head is out: cut the answer short
	}
	return nil
}

// forget drops a torrent and its files.
func (p *peer) forget(h hash) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.of(h); err != nil {
		return err
	}
	p.drop(h)
	return os.RemoveAll(filepath.Join(p.dir, h.HexString()))
}

// drop takes a torrent from the library. The lock is the caller's.
func (p *peer) drop(h hash) {
	if t, ok := p.tasks[h]; ok {
		t.t.Drop()
		delete(p.tasks, h)
	}
	p.done.forget(h)
}
