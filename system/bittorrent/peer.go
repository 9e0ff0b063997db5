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
	"strconv"
	"sync"
	"time"

	"github.com/anacrolix/torrent"
	"github.com/anacrolix/torrent/metainfo"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
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

// redial is how often the known peers of an incomplete torrent are
// dialled again when they are not connected. The library forgets the address of
// a peer that is gone; a tracker would give it again.
const redial = 2 * time.Second

// contentFile is a torrent's file, in a directory of its own named by the info-hash.
const contentFile = "content"

// task is what a node is given to fetch.
type task struct {
	Info []byte   // the info dictionary, bencoded; empty: the peers have it
	From []string // addresses of peers
}

// peer is a node: the library's client and its tasks.
type peer struct {
	config
	cl   *torrent.Client
	done *completion
	kept member.Tasks
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu    sync.Mutex
	tasks map[hash]*held
	known []string // peers for every torrent
}

var _ member.Streamer = (*peer)(nil)

// held is a torrent of this peer.
type held struct {
	task
	t *torrent.Torrent
}

func openPeer(ctx context.Context, c config) (*peer, error) {
	p := &peer{config: c, tasks: map[hash]*held{}, kept: member.Tasks{Dir: filepath.Join(c.dir, "tasks")}}
	p.done = &completion{dir: c.dir, of: map[hash]*pieces{}}
	var err error
	if p.cl, err = c.client(p.done); err != nil {
		return nil, fmt.Errorf("listen for peers at %s: %w", c.listen, err)
	}
	ctx, p.stop = context.WithCancel(ctx)
	// What an earlier process left; all files are checked anew.
	if err := member.Resume(p.kept, p.fetch); err != nil {
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

// redial goes on naming their peers to incomplete torrents.
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
				p.introduce(h)
			}
		}
		p.mu.Unlock()
	}
}

// introduce names its peers to a torrent.
func (p *peer) introduce(h *held) {
	var peers []torrent.PeerInfo
	for _, a := range slices.Concat(h.From, p.known) {
		if at, err := netip.ParseAddrPort(a); err == nil && a != p.listen {
			peers = append(peers, torrent.PeerInfo{Addr: net.TCPAddrFromAddrPort(at), Source: torrent.PeerSourceDirect, Trusted: true})
		}
	}
	h.t.AddPeers(peers)
}

func (p *peer) at(h hash, file string) string { return filepath.Join(p.dir, h.HexString(), file) }

// Connect implements member.Node: a peer for every torrent.
func (p *peer) Connect(address string) error {
	if _, err := netip.ParseAddrPort(address); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = member.Merge(p.known, []string{address})
	for _, h := range p.tasks {
		p.introduce(h)
	}
	return nil
}

// Fetch implements member.Node.
func (p *peer) Fetch(ref string, raw json.RawMessage) error {
	var t task
	if err := json.Unmarshal(raw, &t); err != nil {
		return err
	}
	return p.fetch(ref, t)
}

// fetch adds a torrent, or more peers and the metainfo to one that is there.
func (p *peer) fetch(ref string, t task) error {
	h, err := parse(ref)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now, there := p.tasks[h]
	if !there {
		now = &held{}
	}
	now.From = member.Merge(now.From, t.From)
	if len(now.Info) == 0 {
		now.Info = t.Info
	}
	if err := p.kept.Save(ref, now.task); err != nil {
		return err
	}
	if err := p.add(h, now); err != nil {
		return err
	}
	p.introduce(now)
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
		if err := p.kept.Save(h.HexString(), now.task); err != nil {
			p.log.Error("keep the metainfo", slog.String("torrent", h.HexString()), slog.Any("error", err))
		}
	})
	return nil
}

// of is a torrent of this peer.
func (p *peer) of(ref string) (*held, hash, error) {
	h, err := parse(ref)
	if err != nil {
		return nil, h, fmt.Errorf("%w: %w", err, system.ErrBadRef)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.tasks[h]
	if !ok {
		return nil, h, fmt.Errorf("%s: %w", h, system.ErrNotFound)
	}
	return t, h, nil
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

// Progress implements member.Node. The library keeps all of it as counts.
func (p *peer) Progress(ref string) (system.Progress, error) {
	f := system.Progress{Size: -1}
	t, _, err := p.of(ref)
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

// ReadBack implements member.Node: the file, whatever the library says of it.
func (p *peer) ReadBack(w http.ResponseWriter, r *http.Request, ref string) error {
	_, h, err := p.of(ref)
	if err != nil {
		return err
	}
	f, err := os.Open(p.at(h, contentFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: no piece has been written: %w", h, system.ErrNotFound)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	http.ServeContent(w, r, "", time.Time{}, f)
	return nil
}

// Stream implements member.Streamer.
func (p *peer) Stream(w http.ResponseWriter, req *http.Request, ref string) error {
	t, h, err := p.of(ref)
	if err != nil {
		return err
	}
	select {
	case <-t.t.GotInfo():
	case <-t.t.Closed():
		return fmt.Errorf("%s: %w", h, system.ErrNotFound)
	case <-req.Context().Done():
		return context.Cause(req.Context())
	}
	r := t.t.NewReader()
	defer r.Close()
	r.SetContext(req.Context())
	w.Header().Set("Content-Length", strconv.FormatInt(t.t.Length(), 10))
	if _, err := io.Copy(w, r); err != nil {
		panic(http.ErrAbortHandler) // the head is out: cut the answer short
	}
	return nil
}

// Forget implements member.Node.
func (p *peer) Forget(ref string) error {
	_, h, err := p.of(ref)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(h)
	return errors.Join(p.kept.Remove(ref), os.RemoveAll(p.at(h, "")))
}

// drop takes a torrent from the library. The lock is the caller's.
func (p *peer) drop(h hash) {
	if t, ok := p.tasks[h]; ok {
		t.t.Drop()
		delete(p.tasks, h)
	}
	p.done.forget(h)
}
