package deluge

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/anacrolix/torrent/metainfo"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// nudge is how often a node that lacks pieces is given again the peers that it
// is not connected to, in the place of a tracker.
const nudge = 5 * time.Second

// Publish implements system.Member: the file is hashed as it is written, and
// the daemon takes our word for it (seed_mode).
func (n *node) Publish(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	doing := fmt.Sprintf("publish %q", name)
	fail := func(err error) (system.Ref, error) { return "", n.explain(doing, err) }
	if size < 1 {
		return fail(errors.New("a torrent has at least one byte"))
	}
	if err := n.Alive(); err != nil {
		return fail(err)
	}
	info := metainfo.Info{Name: disk.FileName(name), PieceLength: n.piece, Length: size}
	file, err := member.Receive(ctx, n.dir.Files, n.dataDir().Path, size, n.piece, r, func(piece []byte) {
		sum := sha1.Sum(piece) // BEP 3
		info.Pieces = append(info.Pieces, sum[:]...)
	})
	if err != nil {
		return fail(err)
	}
	defer n.dir.Files.RemoveAll(file) // of it nothing is there when it was renamed
	t, err := newTorrent(info)
	if err != nil {
		return fail(err)
	}
	ref := t.ref
	if done, err := n.has(ctx, ref); done || err != nil {
		if err != nil {
			return fail(err)
		}
		return ref, nil
	}
	task := n.assign(t)
	n.published.Store(ref, t)
	if err := errors.Join(n.dir.Files.MkdirAll(task.dir.Path, 0o755),
		n.dir.Files.Rename(file, task.path())); err != nil {
		n.drop(ref) // the daemon was not given it
		return fail(errors.Join(err, n.dir.Files.RemoveAll(task.dir.Path)))
	}
	if err := n.add(ctx, task, true); err != nil {
		return fail(errors.Join(err, n.Forget(context.WithoutCancel(ctx), ref)))
	}
	if err := n.serves(ctx, ref); err != nil {
		return fail(err)
	}
	return ref, nil
}

// has says whether the node serves all of ref, once it has hashed what an earlier
// process left. What it has of it in part is dropped: it is about to be published.
func (n *node) has(ctx context.Context, ref system.Ref) (bool, error) {
	t := n.task(ref)
	if t == nil {
		return false, nil
	}
	for {
		s, err := n.status(ctx, ref)
		switch {
		case err != nil:
			return false, err
		case s.Checking: // after a restart
			if !member.Sleep(ctx, 100*time.Millisecond) {
				return false, context.Cause(ctx)
			}
		case s.Have == t.Length: // perhaps not yet flushed
			return true, n.serves(ctx, ref)
		default:
			return false, n.Forget(ctx, ref)
		}
	}
}

// serves waits until the daemon seeds ref.
func (n *node) serves(ctx context.Context, ref system.Ref) error {
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		s, err := n.status(ctx, ref)
		if err != nil {
			return err
		}
		if s.complete() {
			return nil
		}
		if !member.Sleep(ctx, pause) {
			return fmt.Errorf("it does not serve (%s %s): %w", s.State, s.Message, context.Cause(ctx))
		}
	}
}

// assign gives the node a task. Its directory is no other's, ever: libtorrent
// removes the files of a forgotten torrent in its own time.
func (n *node) assign(t torrent) *task {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.serial++
	ref := t.ref
	k := &task{torrent: t, dir: n.dataDir().Sub(fmt.Sprintf("%s-%d", ref, n.serial))}
	n.tasks[ref] = k
	return k
}

func (n *node) task(ref system.Ref) *task {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.tasks[ref]
}

// add gives the daemon a torrent. Without seed it hashes what is in the task's
// directory, if anything is.
func (n *node) add(ctx context.Context, t *task, seed bool) error {
	var id string
	err := n.call(ctx, "add", &id, t.Name+".torrent", base64.StdEncoding.EncodeToString(t.file),
		map[string]any{"download_location": t.dir.Path, "seed_mode": seed})
	if err == nil && id != string(t.ref) {
		err = fmt.Errorf("the daemon calls the torrent %q instead of %s: %w", id, t.ref, system.ErrAnswer)
	}
	return err
}

// Fetch implements system.Member.
func (n *node) Fetch(ctx context.Context, ref system.Ref, from []string) error {
	doing := "fetch " + string(ref)
	if err := parseRef(ref); err != nil {
		return err
	}
	peers, err := parsePeers(from)
	if err != nil {
		return err
	}
	t := n.task(ref)
	if t == nil {
		file, err := n.shared(ref)
		if err != nil {
			return n.explain(doing, err)
		}
		t = n.assign(file)
		if err := n.add(ctx, t, false); err != nil {
			n.drop(ref)
			return n.explain(doing, err)
		}
	}
	n.mu.Lock()
	peers = append(peers, n.peers...)
	n.mu.Unlock()
	if err := n.introduce(ctx, ref, peers); err != nil {
		return n.explain(doing, err)
	}
	t.Begin(func(ctx context.Context) { n.remind(ctx, ref, peers) })
	return nil
}

// shared is the torrent that some node of the cluster has published.
func (n *node) shared(ref system.Ref) (torrent, error) {
	t, ok := n.published.Load(ref)
	if !ok {
		return torrent{}, fmt.Errorf("no node of the cluster has published it: %w", system.ErrNotFound)
	}
	return t.(torrent), nil
}

// remind names its peers to the daemon until it has all, the task ends or the
// daemon does.
func (n *node) remind(ctx context.Context, ref system.Ref, peers []netip.AddrPort) {
	if len(peers) == 0 {
		return
	}
	for member.Sleep(ctx, nudge) && n.Alive() == nil {
		ask, cancel := context.WithTimeout(ctx, patient)
		s, err := n.status(ask, ref)
		if err == nil && !s.complete() {
			err = n.introduce(ask, ref, peers)
		}
		cancel()
		if err == nil && s.complete() {
			return
		}
		// An error is seen by whoever asks how far it is.
	}
}

// Progress implements system.Member.
func (n *node) Progress(ctx context.Context, ref system.Ref) (system.Progress, error) {
	doing := "ask about " + string(ref)
	t, err := n.known(ref)
	if err != nil {
		return system.Progress{}, err
	}
	s, err := n.status(ctx, ref)
	if err != nil {
		return system.Progress{}, n.explain(doing, err)
	}
	done := s.complete() && s.Have == t.Length
	f := system.Progress{
		Size: t.Length, Verified: s.Have, Written: -1, Complete: done,
		Received: s.Received, Sent: s.Sent, Peers: s.Peers,
	}
	if done {
		f.Written = t.Length
	}
	if s.State == "Error" || s.State == "Paused" || s.State == "Queued" {
		f.Trouble = s.State + ": " + s.Message
	}
	return f, nil
}

// known is the node's task, of which its daemon may have ended.
func (n *node) known(ref system.Ref) (*task, error) {
	if err := parseRef(ref); err != nil {
		return nil, err
	}
	t := n.task(ref)
	if t == nil {
		return nil, fmt.Errorf("deluge: %s: %s is no torrent of this node: %w", n.Label, ref, system.ErrNotFound)
	}
	return t, nil
}

// ReadBack implements system.Member.
func (n *node) ReadBack(ctx context.Context, ref system.Ref, w io.Writer) error {
	t, err := n.known(ref)
	if err != nil {
		return err
	}
	f, err := n.dir.Files.Open(t.path())
	if err != nil {
		return n.explain("read back "+string(ref), err)
	}
	defer f.Close()
	done, err := io.Copy(w, io.LimitReader(&untilDone{ctx, f}, t.Length))
	if err == nil && done < t.Length {
		err = fmt.Errorf("%d of %d bytes are on disk: %w", done, t.Length, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return n.explain("read back "+string(ref), err)
	}
	return nil
}

// untilDone is a reader that fails when its context ends.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u *untilDone) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.r.Read(p)
}

// Forget implements system.Member.
func (n *node) Forget(ctx context.Context, ref system.Ref) error {
	t, err := n.known(ref)
	if err != nil {
		return err
	}
	doing := "forget " + string(ref)
	if err := n.call(ctx, "remove", nil, ref); err != nil && !errors.Is(err, system.ErrNotFound) {
		return n.explain(doing, err)
	}
	n.drop(ref)
	if err := n.dir.Files.RemoveAll(t.dir.Path); err != nil {
		return n.explain(doing, err)
	}
	return nil
}

// drop takes the task from the node's books.
func (n *node) drop(ref system.Ref) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if t := n.tasks[ref]; t != nil {
		t.Stop()
		delete(n.tasks, ref)
	}
}

// status is what the daemon says of a torrent.
type status struct {
	Have           int64 // bytes of whole pieces that passed their hash
	Received, Sent int64 // payload since the daemon started
	Peers          int
	Seeding        bool // complete, and written
	Checking       bool
	State, Message string // Deluge's words
}

func (s status) complete() bool { return s.Seeding && !s.Checking }

func (n *node) status(ctx context.Context, ref system.Ref) (s status, err error) {
	return s, n.call(ctx, "status", &s, ref)
}
