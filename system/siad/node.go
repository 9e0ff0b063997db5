package siad

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// Time limits of work that is not an operation on an object.
const (
	cleanTime = 10 * time.Second
	// noticeTime is how long a renter may take to notice that a put was cut off. It also limits the
	// removal of what a put has left once the put's context has ended.
	noticeTime = time.Second
	// sendTime is how long after its put the last pieces of an object are awaited before it is
	// deleted. It is limited, since a host may be gone.
	sendTime = 20 * time.Second
)

// node is a renter.
type node struct {
	sia.Renter
	data, parity int64
	sending      sync.Map // time of the put (by system.Ref) of objects not known to be at full redundancy
	session      string   // prefix of the files that this session moves aside
	moved        atomic.Int64
	left         atomic.Bool // whether files were moved aside, in this session or an earlier one
}

func newNode(a *sia.API, opt system.Options, p sia.Plan) *node {
	n := &node{data: p.Data, parity: p.Total - p.Data, session: rand.Text()[:10] + "-"}
	n.API, n.Write = a, true
	if n.Prefix = strings.Trim(opt["path"], "/"); n.Prefix != "" {
		n.Prefix += "/"
	}
	n.Ask = func(ctx context.Context, ref system.Ref) (int64, error) {
		f, err := n.file(ctx, ref)
		return int64(f.FileSize), err
	}
	return n
}

// redundancy returns the parameters of siad's calls for the redundancy of puts.
func (n *node) redundancy() url.Values {
	return url.Values{"datapieces": {strconv.FormatInt(n.data, 10)}, "paritypieces": {strconv.FormatInt(n.parity, 10)}}
}

// Put implements system.Store. It returns at redundancy 1: each chunk is on just as many hosts as
// are needed to rebuild it.
func (n *node) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	if err := n.MayWrite(fmt.Sprintf("put %q", name)); err != nil {
		return "", err
	}
	ref := n.Named(name)
	err := n.API.Upload(ctx, http.MethodPost, "/renter/uploadstream/"+string(ref), n.redundancy(), size, r)
	if err != nil {
		n.discard(ctx, ref, err)
	} else {
		err = n.accepted(ctx, ref, size)
	}
	if err != nil {
		return "", fmt.Errorf("siad: put %q: %w", name, err)
	}
	n.Add(ref, size)
	n.sending.Store(ref, time.Now())
	return ref, nil
}

// accepted verifies siad's answer 204, which it also gives if nothing was stored.
func (n *node) accepted(ctx context.Context, ref system.Ref, size int64) error {
	f, err := n.file(ctx, ref)
	switch {
	case errors.Is(err, system.ErrNotFound):
		err = fmt.Errorf("siad answered 204 and has no file %s: nothing was stored", ref)
	case err == nil && (int64(f.FileSize) != size || size > 0 && !f.Available):
		err = fmt.Errorf("siad answered 204 and its file %s has %.0f of %d bytes at redundancy %g", ref, f.FileSize,
			size, f.Redundancy)
	}
	if err != nil {
		err = errors.Join(err, n.unlocked(ctx))
	}
	return err
}

// aside returns the folder for the remains of failed puts. No object has such a name: "=" begins a
// hexadecimal escape.
func (n *node) aside() string { return n.Prefix + n.Mark + "=cut-off/" }

// discard moves the remains of a failed upload aside. Nothing else can be at the path: it begins
// with a mark of this run, or the network is private. They stay if an earlier put stored them or a
// concurrent one may have.
//
// They are not deleted: a piece that arrives for a deleted file makes siad 1.5.9 drop all chunks
// that wait for that host, and puts of other files fail.
func (n *node) discard(ctx context.Context, ref system.Ref, failure error) {
	if _, ours := n.Stored(ref); ours || strings.Contains(failure.Error(), "already exists") {
		return
	}
	budget := cleanTime
	if ctx.Err() != nil {
		budget, ctx = noticeTime, context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	to := n.aside() + n.session + strconv.FormatInt(n.moved.Add(1), 10)
	// A renter that has not answered may not have noticed yet that the upload was cut off. It
	// creates a file of what it has received only when it does.
	for end := time.Now().Add(noticeTime); ; time.Sleep(noticeTime / 20) {
		err := n.API.Post(ctx, "/renter/rename/"+string(ref), url.Values{"newsiapath": {to}})
		if !errors.Is(err, system.ErrNotFound) {
			n.left.Store(true) // even without an answer: the file may have been moved
			return
		}
		if web.Status(failure) != 0 || time.Now().After(end) {
			return // often there are no remains
		}
	}
}

// removeAside deletes the remains of failed puts of this session and of killed ones. No pieces of
// them are in transit any more when the node is stopped.
func (n *node) removeAside(ctx context.Context) error {
	if n.Mark == "" || !n.Write || !n.left.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	err := n.API.Post(ctx, "/renter/dir/"+strings.TrimSuffix(n.aside(), "/"), url.Values{"action": {"delete"}})
	if err != nil && !errors.Is(err, system.ErrNotFound) {
		return fmt.Errorf("siad: remove %s, which failed puts left: %w", n.aside(), err)
	}
	n.left.Store(false)
	return nil
}

// file returns the renter's report on a file.
func (n *node) file(ctx context.Context, ref system.Ref) (file, error) {
	var answer struct {
		File file `json:"file"`
	}
	path, err := n.Path(ref)
	if err == nil {
		err = n.API.Get(ctx, "/renter/file/"+path, nil, &answer)
	}
	return answer.File, cmp.Or(err, answer.File.absurd())
}

// fromHosts returns parameters that force a download to fetch its bytes from hosts: without them,
// siad may read the uploaded file from its own disk. /renter/stream, which needs no password, has
// no such switch and is not used.
func fromHosts() url.Values {
	return url.Values{"httpresp": {"true"}, "disablelocalfetch": {"true"}}
}

// Get implements system.Getter.
func (n *node) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	path, err := n.Path(ref)
	if err != nil {
		return err
	}
	if size, ours := n.Stored(ref); ours && size == 0 {
		_, err := n.file(ctx, ref) // there are no bytes to fetch from hosts
		return err
	}
	_, err = n.API.Download(ctx, "/renter/download/"+path, fromHosts(), w)
	return err
}

// GetRange implements system.Ranger.
func (n *node) GetRange(ctx context.Context, ref system.Ref, off, count int64, w io.Writer) error {
	return n.Range(ctx, ref, off, count, func(path string, there int64) error {
		q := fromHosts()
		q.Set("offset", strconv.FormatInt(off, 10))
		q.Set("length", strconv.FormatInt(there, 10))
		got, err := n.API.Download(ctx, "/renter/download/"+path, q, w)
		if err == nil && got != there {
			err = fmt.Errorf("siad: %d bytes at %d of %s: got %d", there, off, ref, got)
		}
		return err
	})
}

// Delete implements system.Deleter, for objects that this node has put. It first waits for pieces
// in transit ([node.sent]). If the caller has already settled the object, as for measured deletes,
// it makes no extra call.
func (n *node) Delete(ctx context.Context, ref system.Ref) error {
	return n.Erase(ref, func(path string) error {
		n.sent(ctx, ref)
		return n.API.Post(ctx, "/renter/delete/"+path, nil)
	})
}

// sent waits until no pieces of an object are in transit or until sendTime after its put: an
// earlier delete would cost other objects pieces, or make their puts fail (see discard).
func (n *node) sent(ctx context.Context, ref system.Ref) {
	put, ours := n.sending.LoadAndDelete(ref)
	if !ours {
		return
	}
	ctx, cancel := context.WithDeadline(ctx, put.(time.Time).Add(sendTime))
	defer cancel()
	_ = n.Settle(ctx, ref) // pieces that have not arrived by now are not awaited
}

// List implements system.Lister.
func (n *node) List(ctx context.Context, visit func(system.Object) error) error {
	return n.files(ctx, func(f file) error {
		if err := f.absurd(); err != nil || !n.Ours(f.SiaPath) {
			return err
		}
		ref := system.Ref(f.SiaPath)
		return visit(system.Object{Name: n.Name(ref), Ref: ref, Size: int64(f.FileSize)})
	})
}

// files visits the renter's files, except the remains of failed puts.
func (n *node) files(ctx context.Context, each func(file) error) error {
	var answer struct {
		Files []file `json:"files"` // null when there are none
	}
	if err := n.API.Get(ctx, "/renter/files", nil, &answer); err != nil {
		return err
	}
	for _, f := range answer.Files {
		if strings.HasPrefix(f.SiaPath, n.aside()) {
			n.left.Store(true)
		} else if err := each(f); err != nil {
			return err
		}
	}
	return nil
}

// Stats implements system.Stats. Absolute is what the renter has sent to hosts for the files that
// it still has: whole sectors of every piece. An attached renter also has files of others, so only
// files that this run may have stored count there or, if it only reads, files in its folder. Disk,
// entries and inodes are those of the hosts' storage folders, if this run started the hosts.
func (n *node) Stats(ctx context.Context) (system.Holdings, error) {
	h, err := n.Usage()
	if err != nil {
		return h, err
	}
	err = n.files(ctx, func(f file) error {
		if n.Ours(f.SiaPath) {
			h.Objects++
			h.Absolute += int64(f.UploadedBytes)
		}
		return f.absurd()
	})
	return h, err
}

// Settle implements system.Settler: it waits until every chunk has all its pieces. It polls every
// 5 ms or 2 % of the time waited so far (sia.Poll), so it returns late by at most that plus the time
// of one answer.
func (n *node) Settle(ctx context.Context, ref system.Ref) error {
	want := float64(n.data+n.parity) / float64(n.data)
	from := time.Now()
	err := sia.Poll(ctx, name, fmt.Sprintf("%s did not reach full redundancy", ref), func(ctx context.Context) (bool,
		string, error) {
		f, err := n.file(ctx, ref)
		state := fmt.Sprintf("redundancy %.3g of %.3g, %.0f bytes uploaded", f.Redundancy, want, f.UploadedBytes)
		return f.FileSize == 0 || f.Redundancy >= want-tolerance, state, err
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: not repaired in %v", err, time.Since(from).Round(time.Millisecond))
	}
	if err == nil {
		n.sending.Delete(ref)
	}
	return err
}

// Cool implements system.Cooler. Downloads always come from the hosts (fromHosts), so it only
// checks that the hosts can serve the file.
func (n *node) Cool(ctx context.Context, ref system.Ref) error {
	f, err := n.file(ctx, ref)
	if err != nil {
		return err
	}
	if f.FileSize > 0 && (!f.Available || f.Redundancy < 1) {
		return fmt.Errorf("siad: %s is not on enough hosts (redundancy %g): %w", ref, f.Redundancy, system.ErrTooFew)
	}
	return nil
}

// Stop implements group.Node.
func (n *node) Stop(ctx context.Context) error {
	return errors.Join(n.removeAside(ctx), n.Renter.Stop(ctx))
}

// attach checks in advance for problems that would otherwise appear only as uploads without
// progress.
func (n *node) attach(ctx context.Context, identity map[string]string) error {
	if err := checkPassword(ctx, n.API); err != nil {
		return err
	}
	if err := n.API.Synced(ctx); err != nil {
		return err
	}
	if n.Write { // reading needs neither a wallet nor contracts for uploads
		if err := n.unlocked(ctx); err != nil {
			return err
		}
	}
	if n.Write || n.data == 0 {
		r, err := n.uploadReady(ctx)
		if err != nil {
			return err
		}
		if n.data == 0 {
			n.data, n.parity = r.DataPieces, r.ParityPieces
		}
		if n.data < 1 || n.parity < 1 {
			return fmt.Errorf("siad: %s reports no default redundancy; set options `data_pieces` and `parity_pieces`",
				n.API.Base.Host)
		}
		if n.Write && !r.Ready {
			return fmt.Errorf("siad: %s has %d contracts for uploads and needs %d: %w", n.API.Base.Host, r.Active,
				r.Needed, system.ErrTooFew)
		}
	}
	return n.identify(ctx, identity)
}

// uploadReady returns the renter's readiness for uploads at the redundancy of puts or, until that
// is known, at the renter's default redundancy.
func (n *node) uploadReady(ctx context.Context) (r readyAnswer, err error) {
	query := n.redundancy()
	if n.data == 0 {
		query = nil
	}
	err = n.API.Get(ctx, "/renter/uploadready", query, &r)
	return r, err
}

// unlocked returns an error if the wallet is locked.
func (n *node) unlocked(ctx context.Context) error {
	var w walletAnswer
	err := n.API.Get(ctx, "/wallet", nil, &w)
	if err == nil && !w.Unlocked {
		err = fmt.Errorf("siad: wallet of %s: %w; %s", n.API.Base.Host, system.ErrLocked, unlockHint)
	}
	return err
}

// identify adds the daemon's properties to the identity for the record.
func (n *node) identify(ctx context.Context, identity map[string]string) error {
	var v struct {
		Version string `json:"version"`
	}
	if err := n.API.Get(ctx, "/daemon/version", nil, &v); err != nil {
		return err
	}
	identity["version"], identity["currency"] = "siad "+v.Version, "SC"
	identity["redundancy"] = fmt.Sprintf("%d data + %d parity pieces", n.data, n.parity)
	identity["put"] = "uploadstream: accepted at redundancy 1"
	identity["get"] = "download with disablelocalfetch=true: from hosts"
	identity["connections"] = "the daemon keeps its sessions with hosts"
	return nil
}
