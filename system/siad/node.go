package siad

import (
	"context"
	"crypto/rand"
	"encoding/json"
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

// Limits of what is not an operation on an object.
const (
	cleanTime = 10 * time.Second
	// noticeTime is how long a renter is given to see that a put was cut off. Removing
	// what a put has left takes no longer once its context has ended.
	noticeTime = time.Second
	// sendTime is how long after its put an object's last pieces are waited for before
	// it is deleted: no longer, since a host may be gone.
	sendTime = 20 * time.Second
)

// node is a renter.
type node struct {
	sia.Renter
	data, parity int64
	sending      sync.Map // time of the put of each object (system.Ref) not known to be at full redundancy
	session      string   // distinguishes what the sessions of a run move aside
	moved        atomic.Int64
	left         atomic.Bool // files were moved aside, in this session or an earlier one
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

// redundancy is that of puts, as siad's calls take it.
func (n *node) redundancy() url.Values {
	return url.Values{"datapieces": {strconv.FormatInt(n.data, 10)}, "paritypieces": {strconv.FormatInt(n.parity, 10)}}
}

// Put implements system.Store. It returns at redundancy 1: each chunk is on as
// many hosts as rebuild it, and on no more.
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

// accepted holds siad to its 204, which it also gives when nothing was stored.
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

// aside is the folder for what failed puts leave behind. No object has such a
// name: "=" begins an escape in hexadecimal.
func (n *node) aside() string { return n.Prefix + n.Mark + "=cut-off/" }

// discard takes away what a failed upload left behind. Nothing else can be there:
// the path begins with a mark of this run, or the network is ours. It is kept
// when an earlier put made it, or one at the same time may have.
//
// It is moved aside and not deleted: a piece that arrives for a deleted file makes
// siad 1.5.9 drop all chunks which wait for that host, and puts of other files fail.
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
	// A renter that has not answered may not have seen yet that nothing more
	// comes, and makes a file of what came only then.
	for end := time.Now().Add(noticeTime); ; time.Sleep(noticeTime / 20) {
		err := n.API.Post(ctx, "/renter/rename/"+string(ref), url.Values{"newsiapath": {to}})
		if !errors.Is(err, system.ErrNotFound) {
			n.left.Store(true) // also when no answer came: it may be there
			return
		}
		if web.Status(failure) != 0 || time.Now().After(end) {
			return // often there is nothing
		}
	}
}

// removeAside deletes what failed puts left, in this session or in one that was killed:
// nothing of it is on its way any more when the node is stopped.
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

// file asks the renter what it knows of a file.
func (n *node) file(ctx context.Context, ref system.Ref) (file, error) {
	path, err := n.Path(ref)
	if err != nil {
		return file{}, err
	}
	var answer struct {
		File file `json:"file"`
	}
	if err := n.API.Get(ctx, "/renter/file/"+path, nil, &answer); err != nil {
		return file{}, err
	}
	return answer.File, answer.File.absurd()
}

// fromHosts makes a download prove where the bytes come from: without it siad
// may read the file that was uploaded from its disk. /renter/stream, which needs
// no password, has no such switch and is not used.
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
		_, err := n.file(ctx, ref) // there is nothing to fetch from hosts
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

// Delete implements system.Deleter, for what this node has put there. It waits for
// pieces that are on their way ([node.sent]); one whose caller has settled the object, as
// those that are measured, asks nothing before.
func (n *node) Delete(ctx context.Context, ref system.Ref) error {
	return n.Erase(ref, func(path string) error {
		n.sent(ctx, ref)
		return n.API.Post(ctx, "/renter/delete/"+path, nil)
	})
}

// sent waits until nothing of an object is on its way any more, or sendTime after its
// put: a delete would cost other objects pieces, or their puts (see discard).
func (n *node) sent(ctx context.Context, ref system.Ref) {
	put, ours := n.sending.LoadAndDelete(ref)
	if !ours {
		return
	}
	ctx, cancel := context.WithDeadline(ctx, put.(time.Time).Add(sendTime))
	defer cancel()
	_ = n.Settle(ctx, ref) // what does not come is deleted without it
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

// files hands over one of the renter's files after the other and keeps none of them:
// 50,000 make an answer of 25 MB. What failed puts left is not among them.
func (n *node) files(ctx context.Context, each func(file) error) error {
	var visited error
	err := n.API.List(ctx, "/renter/files", "files", func(d *json.Decoder) error {
		var f file
		if err := d.Decode(&f); err != nil {
			return err
		}
		if strings.HasPrefix(f.SiaPath, n.aside()) {
			n.left.Store(true)
			return nil
		}
		visited = each(f)
		return visited
	})
	if visited != nil { // and not what is wrong with the answer
		return visited
	}
	return err
}

// Stats implements system.Stats. Absolute is what the renter has sent to hosts
// for the files it still has: whole sectors, every piece. An attached renter has
// files of others: there only those count that this run may have stored, or,
// when it only reads, those of its folder. Disk, entries and inodes are those of
// the hosts' storage folders, when we have started them.
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

// Settle implements system.Settler: it waits until every chunk has all its
// pieces. It asks for that every 5 ms, or 2 % of what it waited (sia.Poll), and so
// ends late by that and by one answer of the renter.
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

// Cool implements system.Cooler. Downloads go to the hosts whatever lies here
// (fromHosts); what remains to prove is that the hosts can serve the file.
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
