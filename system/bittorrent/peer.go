package bittorrent

import (
	"context"
	"crypto/sha1"
	"errors"
	"flag"
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
	"github.com/plimsoll-project/plimsoll/testbed"
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

// redial is how often the known peers of an incomplete torrent are
// dialled again when they are not connected. The library forgets the address of
// a peer that is gone; a tracker would give it again.
const redial = 2 * time.Second

// contentFile is a torrent's file, in a directory of its own named by the info-hash.
const contentFile = "content"

// task is a torrent to fetch: its info dictionary, bencoded.
type task = member.Task[[]byte]

// peer is a node: the library's client and its tasks.
type peer struct {
	config
	cl   *torrent.Client
	done storage.PieceCompletion // what an earlier process left is not in it, and checked anew

	mu    sync.Mutex
	tasks map[hash]*held
}

// held is a torrent of this peer.
type held struct {
	task
	t *torrent.Torrent
}

// Serve implements system.Embedded: the node of `plimsoll node bittorrent`.
func (System) Serve(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("node bittorrent", flag.ContinueOnError)
	flags.SetOutput(stderr)
	control := flags.String("control", "", "`address` of the control API")
	var c config
	flags.StringVar(&c.listen, "listen", "", "`address` for peers")
	flags.StringVar(&c.dir, "dir", "", "`directory` of contents and tasks")
	flags.StringVar(&c.transport, "transport", "tcp", "tcp, utp or both")
	flags.Int64Var(&c.piece, "piece", 256<<10, "`bytes` of a piece")
	flags.IntVar(&c.connections, "max_connections", 50, "connections of a torrent")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *control == "" || c.listen == "" || c.dir == "" || flags.NArg() > 0 {
		return errors.New("bittorrent: give --control ADDRESS, --listen ADDRESS and --dir DIRECTORY, and nothing " +
			"besides flags")
	}
	c.log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	p := &peer{config: c, tasks: map[hash]*held{}}
	p.done = storage.NewMapPieceCompletion()
	var err error
	if p.cl, err = c.client(p.done); err != nil {
		return fmt.Errorf("bittorrent: listen for peers at %s: %w", c.listen, err)
	}
	defer func() {
		if err := errors.Join(p.cl.Close()...); err != nil {
			c.log.Error("close", slog.Any("error", err))
		}
	}()
	var redialling member.Background
	redialling.Begin(p.redial)
	defer redialling.Stop()
	return member.Serve(ctx, name, stdout, member.Server{What: "peers at " + c.listen + ", control", Address: *control,
		Handler: member.Handler[[]byte](p)})
}

// redial goes on naming their peers to incomplete torrents.
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

// introduce names its peers to a torrent.
func (p *peer) introduce(h *held) {
	var peers []torrent.PeerInfo
	for _, a := range h.From {
		if at, err := netip.ParseAddrPort(a); err == nil && a != p.listen {
			peers = append(peers, torrent.PeerInfo{Addr: net.TCPAddrFromAddrPort(at), Source: torrent.PeerSourceDirect,
				Trusted: true})
		}
	}
	h.t.AddPeers(peers)
}

func (p *peer) at(h hash, file string) string { return filepath.Join(p.dir, h.HexString(), file) }

// Fetch implements member.Node: a torrent, whose file is checked anew, or more peers for one that is there.
func (p *peer) Fetch(_ context.Context, ref system.Ref, t task) error {
	h, err := parse(string(ref))
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now, there := p.tasks[h]
	if !there {
		now = &held{task: task{Said: t.Said}}
		if _, err := os.Stat(p.at(h, contentFile)); errors.Is(err, fs.ErrNotExist) { // there is nothing to check
			if err := p.mark(h, t.Said, false); err != nil {
				return err
			}
		}
	}
	now.From = member.Merge(now.From, t.From)
	return p.add(h, now)
}

// add hands a task's torrent to the library, which fetches all of it.
func (p *peer) add(h hash, now *held) (err error) {
	opts := torrent.AddTorrentOpts{InfoHash: h, InfoBytes: now.Said}
	if now.t, _, err = p.cl.AddTorrentSpec(&torrent.TorrentSpec{AddTorrentOpts: opts}); err != nil {
		return fmt.Errorf("%s: %w", h, err)
	}
	p.tasks[h] = now
	now.t.DownloadAll()
	p.introduce(now)
	return nil
}

// Publish implements member.Node. The info dictionary that it returns, bencoded,
// depends on the name, the bytes and the size of a piece alone.
func (p *peer) Publish(ctx context.Context, title string, size int64, r io.Reader) (system.Ref, []byte, error) {
	info := metainfo.Info{Name: title, PieceLength: p.piece, Length: size}
	file, err := member.Receive(ctx, testbed.LocalFiles{}, p.dir, size, p.piece, r, func(piece []byte) {
		sum := sha1.Sum(piece) // BEP 3
		info.Pieces = append(info.Pieces, sum[:]...)
	})
	if err != nil {
		return "", nil, err
	}
	defer os.Remove(file) // fails when renamed, as it should
	b, err := bencode.Marshal(info)
	if err != nil {
		return "", nil, err
	}
	h := metainfo.HashBytes(b)
	return system.Ref(h.HexString()), b, p.seed(h, b, file)
}

// seed puts a file in its place and adds its torrent, unless it is complete.
func (p *peer) seed(h hash, info []byte, file string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := &held{task: task{Said: info}}
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

// mark says of all pieces of a torrent whether they are on disk and good.
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

// of is a torrent of this peer.
func (p *peer) of(ref system.Ref) (*held, hash, error) {
	h, err := parse(string(ref))
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
	have := func() bool { return h.t.PieceState(h.t.NumPieces() - 1).Complete }
	for last = have(); ; last = !last {
		if s = h.t.Stats(); have() == last {
			return s, last
		}
	}
}

// Progress implements member.Node. The library keeps all of it as counts.
func (p *peer) Progress(_ context.Context, ref system.Ref) (f system.Progress, err error) {
	t, _, err := p.of(ref)
	if err != nil {
		return f, err
	}
	stats, last := t.counts()
	f.Received, f.Sent, f.Peers = stats.BytesReadData.Int64(), stats.BytesWrittenData.Int64(), stats.ActivePeers
	info := t.t.Info()
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

// drop takes a torrent from the library. The lock is the caller's.
func (p *peer) drop(h hash) {
	if t, ok := p.tasks[h]; ok {
		t.t.Drop()
		delete(p.tasks, h)
	}
}
