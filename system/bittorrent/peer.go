package bittorrent

import (
	"context"
	"crypto/sha1"
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
	"sync"
	"time"

	"github.com/anacrolix/torrent"
	"github.com/anacrolix/torrent/bencode"
	"github.com/anacrolix/torrent/metainfo"
	"github.com/anacrolix/torrent/storage"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// hash is an info-hash (BEP 3).
type hash = metainfo.Hash

// parse parses an info-hash.
func parse(ref system.Ref) (h hash, err error) {
	if err = member.Hex(name, ref, len(h)); err == nil {
		err = h.FromHexString(string(ref))
	}
	return h, err
}

// redial is the interval at which an incomplete torrent connects again to known peers without a
// connection. The library forgets the address of a peer that has gone, which a tracker would supply
// again.
const redial = 2 * time.Second

// contentFile is the name of a torrent's file, in a separate directory named by the info-hash.
const contentFile = "content"

// peer is a node: the library's client and the node's tasks.
type peer struct {
	member.Config
	log  *slog.Logger
	cl   *torrent.Client
	done storage.PieceCompletion // pieces from an earlier process are missing in it, so they are verified again

	mu    sync.Mutex
	tasks map[hash]*held
}

// held is a torrent of this peer. The task has its bencoded info dictionary.
type held struct {
	member.Task
	t *torrent.Torrent
}

// Serve implements system.Embedded: the node of `plimsoll node bittorrent`.
func (System) Serve(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	p := &peer{tasks: map[hash]*held{}, done: storage.NewMapPieceCompletion(),
		log: slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelError}))}
	if err := member.Configure(args, &p.Config); err != nil {
		return err
	}
	var err error
	if p.cl, err = p.client(); err != nil {
		return fmt.Errorf("bittorrent: listen for peers at %s: %w", p.Listen, err)
	}
	defer p.cl.Close()
	go p.redial(ctx)
	return member.Serve(ctx, name, stdout, member.Server{What: "peers at " + p.Listen + ", control", Address: p.Control,
		Handler: member.Handler(p)})
}

// redial repeatedly passes the peers of incomplete torrents to the library.
func (p *peer) redial(ctx context.Context) {
	for timing.Pause(ctx, redial) {
		p.mu.Lock()
		for _, h := range p.tasks {
			if !h.t.Complete().Bool() {
				p.introduce(h)
			}
		}
		p.mu.Unlock()
	}
}

// introduce passes a torrent's peers to the library.
func (p *peer) introduce(h *held) {
	var peers []torrent.PeerInfo
	for _, a := range h.From {
		if at, err := netip.ParseAddrPort(a); err == nil && a != p.Listen {
			peers = append(peers, torrent.PeerInfo{Addr: net.TCPAddrFromAddrPort(at), Source: torrent.PeerSourceDirect,
				Trusted: true})
		}
	}
	h.t.AddPeers(peers)
}

func (p *peer) at(h hash, file string) string { return filepath.Join(p.Dir, h.HexString(), file) }

// Fetch implements member.Node. It adds a torrent, whose file is verified again, or adds peers to
// an existing one.
func (p *peer) Fetch(_ context.Context, ref system.Ref, t member.Task) error {
	h, err := parse(ref)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now, there := p.tasks[h]
	if !there {
		now = &held{Task: member.Task{Metadata: t.Metadata}}
		if _, err := os.Stat(p.at(h, contentFile)); errors.Is(err, fs.ErrNotExist) { // there is nothing to verify
			if err := p.mark(h, t.Metadata, false); err != nil {
				return err
			}
		}
	}
	now.From = member.Merge(now.From, t.From)
	return p.add(h, now)
}

// add passes a task's torrent to the library, which fetches all of it.
func (p *peer) add(h hash, now *held) (err error) {
	opts := torrent.AddTorrentOpts{InfoHash: h, InfoBytes: now.Metadata}
	if now.t, _, err = p.cl.AddTorrentSpec(&torrent.TorrentSpec{AddTorrentOpts: opts}); err != nil {
		return fmt.Errorf("%s: %w", h, err)
	}
	p.tasks[h] = now
	now.t.DownloadAll()
	p.introduce(now)
	return nil
}

// Publish implements member.Node. The bencoded info dictionary that it returns depends only on the
// name, the content and the piece size.
func (p *peer) Publish(ctx context.Context, title string, size int64, r io.Reader) (system.Ref, []byte, error) {
	info := metainfo.Info{Name: title, PieceLength: p.Options.Int("piece"), Length: size}
	file, err := member.Receive(ctx, p.Dir, size, info.PieceLength, r, func(piece []byte) {
		sum := sha1.Sum(piece) // BEP 3
		info.Pieces = append(info.Pieces, sum[:]...)
	})
	if err != nil {
		return "", nil, err
	}
	defer os.Remove(file) // fails after the rename, which is fine
	b, err := bencode.Marshal(info)
	if err != nil {
		return "", nil, err
	}
	h := metainfo.HashBytes(b)
	return system.Ref(h.HexString()), b, p.seed(h, b, file)
}

// seed moves a file to its path and adds its torrent, unless the torrent is already complete.
func (p *peer) seed(h hash, info []byte, file string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := &held{Task: member.Task{Metadata: info}}
	if old, ok := p.tasks[h]; ok {
		if old.t.Complete().Bool() {
			return nil
		}
		now.From = old.From
		p.drop(h)
	}
	if err := errors.Join(os.MkdirAll(p.at(h, ""), 0o755), os.Rename(file, p.at(h, contentFile))); err != nil {
		return err
	}
	if err := p.mark(h, info, true); err != nil {
		return err
	}
	return p.add(h, now)
}

// mark records for all pieces of a torrent whether they are on disk and verified.
func (p *peer) mark(h hash, b []byte, good bool) error {
	var info metainfo.Info
	if err := bencode.Unmarshal(b, &info); err != nil {
		return err
	}
	for i := range info.NumPieces() {
		if err := p.done.Set(metainfo.PieceKey{InfoHash: h, Index: i}, good); err != nil {
			return err
		}
	}
	return nil
}

// of returns a torrent of this peer.
func (p *peer) of(ref system.Ref) (*held, hash, error) {
	h, err := parse(ref)
	if err != nil {
		return nil, h, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.tasks[h]
	if !ok {
		return nil, h, fmt.Errorf("%s: %w", h, system.ErrNotFound)
	}
	return t, h, nil
}

// counts returns the library's counts, and whether the last piece, which may be shorter than the
// others, is one of the complete pieces.
func (h *held) counts() (s torrent.TorrentStats, last bool) {
	have := func() bool { return h.t.PieceState(h.t.NumPieces() - 1).Complete }
	for last = have(); ; last = !last {
		if s = h.t.Stats(); have() == last {
			return s, last
		}
	}
}

// Progress implements member.Node with the library's counts.
func (p *peer) Progress(_ context.Context, ref system.Ref) (f system.Progress, err error) {
	t, _, err := p.of(ref)
	if err != nil {
		return f, err
	}
	stats, last := t.counts()
	f.Received, f.Sent, f.Peers = stats.BytesReadData.Int64(), stats.BytesWrittenData.Int64(), stats.ActivePeers
	info := t.t.Info()
	f.Size = info.TotalLength()
	// Only whole pieces: the library's own byte count includes data that is not verified yet.
	f.Verified = min(int64(stats.PiecesComplete)*info.PieceLength, f.Size)
	if n := info.NumPieces(); last && stats.PiecesComplete < n {
		f.Verified -= info.PieceLength - info.Piece(n-1).Length()
	}
	f.Complete = f.Verified == f.Size && t.t.Complete().Bool()
	if !f.Complete && f.Peers == 0 {
		f.Trouble = "no peers"
	}
	return f, nil
}

// ReadBack implements member.Node with the file, regardless of the library's state.
func (p *peer) ReadBack(w http.ResponseWriter, r *http.Request, ref system.Ref) error {
	_, h, err := p.of(ref)
	if err != nil {
		return err
	}
	return member.ServeFile(w, r, p.at(h, contentFile))
}

// Forget implements member.Node.
func (p *peer) Forget(_ context.Context, ref system.Ref) error {
	_, h, err := p.of(ref)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(h)
	return os.RemoveAll(p.at(h, ""))
}

// drop removes a torrent from the library. The caller holds the lock.
func (p *peer) drop(h hash) {
	if t, ok := p.tasks[h]; ok {
		t.t.Drop()
		delete(p.tasks, h)
	}
}
