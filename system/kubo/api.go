package kubo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/daemon"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// rpc is the RPC interface of one node.
type rpc struct {
	daemon.Access
	chunk string // size of the blocks of a file
}

// call makes a call; a status other than 2xx is an error. 200 does not mean success yet: the caller
// must read the body completely.
func (r *rpc) call(ctx context.Context, command string, args url.Values) (*http.Response, error) {
	return r.send(ctx, command, args, web.Call{})
}

// send makes a call with the header and body of with.
func (r *rpc) send(ctx context.Context, command string, args url.Values, with web.Call) (*http.Response, error) {
	u := *r.At
	u.Path, u.RawQuery = "/api/v0/"+command, args.Encode()
	with.Method, with.URL = http.MethodPost, &u
	resp, err := r.Web.Open(ctx, with)
	return resp, classify(err)
}

// classify distinguishes errors by the daemon's message, since every status is 500.
func classify(err error) error {
	var e *web.StatusError
	if !errors.As(err, &e) {
		return err
	}
	for _, known := range []struct {
		words string
		kind  error
	}{
		{"no space left on device", system.ErrQuota},
		{"path does not have enough components", system.ErrBadRef},
		{"invalid cid", system.ErrBadRef},
		{"could not find", system.ErrNotFound},
		{"no link named", system.ErrNotFound},
		{"context deadline exceeded", system.ErrNotFound}, // of its option timeout: nothing found in time
	} {
		if strings.Contains(e.Message, known.words) {
			return fmt.Errorf("%w: %w", err, known.kind)
		}
	}
	return err
}

// json makes a call and decodes its answer; the last of several values counts.
func (r *rpc) json(ctx context.Context, command string, args url.Values, out any) error {
	resp, err := r.call(ctx, command, args)
	if err != nil {
		return err
	}
	return r.decode(command, resp, func(d *json.Decoder) error { return d.Decode(out) })
}

// decode calls next for each value of an answer, whose trailer may contain an error.
func (r *rpc) decode(command string, resp *http.Response, next func(*json.Decoder) error) error {
	defer resp.Body.Close()
	d := json.NewDecoder(web.Bounded(resp))
	for values := 0; ; values++ {
		err := next(d)
		switch {
		// an answer to options that the daemon cannot parse
		case err == io.EOF && values == 0 && resp.Trailer.Get("X-Stream-Error") == "":
			return fmt.Errorf("kubo: %s on %s: status 200 and an empty answer: %w", command, r.At.Host,
				io.ErrUnexpectedEOF)
		case err == io.EOF:
			_, err = r.Web.Copy(resp, io.Discard)
			return err
		case err != nil:
			return fmt.Errorf("kubo: %s on %s: answer: %w", command, r.At.Host, err)
		}
	}
}

// quiet makes a call and discards its answer.
func (r *rpc) quiet(ctx context.Context, command string, args url.Values) error {
	resp, err := r.call(ctx, command, args)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = r.Web.Copy(resp, io.Discard)
	return err
}

// identity is a node's description of itself.
type identity struct {
	Addresses    []string // each ends with the node's id
	AgentVersion string
}

func (r *rpc) id(ctx context.Context) (i identity, err error) {
	err = r.json(ctx, "id", nil, &i)
	return i, err
}

// Version implements daemon.API.
func (r *rpc) Version(ctx context.Context) (string, error) {
	i, err := r.id(ctx)
	return i.AgentVersion, err
}

// swarm connects to or disconnects from a peer. The daemon answers 200 even if it failed.
func (r *rpc) swarm(ctx context.Context, what, address string) error {
	var answer struct{ Strings []string }
	if err := r.json(ctx, "swarm/"+what, url.Values{"arg": {address}}, &answer); err != nil {
		return err
	}
	if len(answer.Strings) != 1 || !strings.HasSuffix(answer.Strings[0], " success") {
		return fmt.Errorf("kubo: swarm/%s on %s: %s: %s", what, r.At.Host, address, strings.Join(answer.Strings,
			"; "))
	}
	return nil
}

// Connect implements daemon.API.
func (r *rpc) Connect(ctx context.Context, address string) error {
	return r.swarm(ctx, "connect", address)
}

// Address implements daemon.API. It returns a multiaddress with the node's id.
func (r *rpc) Address(ctx context.Context) (string, error) {
	i, err := r.id(ctx)
	if err != nil {
		return "", err
	}
	if len(i.Addresses) == 0 {
		return "", fmt.Errorf("kubo: id on %s: it has no address", r.At.Host)
	}
	return i.Addresses[0], nil
}

// Ping implements daemon.API.
func (r *rpc) Ping(ctx context.Context) error {
	_, err := r.id(ctx)
	return err
}

// Local implements daemon.API. The daemon does not verify hashes of local blocks.
func (r *rpc) Local(ctx context.Context, ref system.Ref) (*http.Response, error) {
	return r.call(ctx, "cat", url.Values{"arg": {string(ref)}, "offline": {"true"}})
}

// Remove implements daemon.API. It removes the pin, and all blocks that no other pin covers.
func (r *rpc) Remove(ctx context.Context, ref system.Ref) error {
	err := r.quiet(ctx, "pin/rm", arg(ref))
	if err != nil && !strings.Contains(err.Error(), "not pinned") {
		return err
	}
	return r.quiet(ctx, "repo/gc", url.Values{"quiet": {"true"}})
}

// Used implements daemon.API, without walking the repo.
func (r *rpc) Used(ctx context.Context) (int64, error) {
	var s struct{ RepoSize int64 }
	err := r.json(ctx, "repo/stat", url.Values{"size-only": {"true"}}, &s)
	return s.RepoSize, err
}

// Store implements daemon.API. It imports and pins a file.
func (r *rpc) Store(ctx context.Context, name string, size int64, content io.Reader) (system.Ref, error) {
	body, err := web.Exactly(content, size) // otherwise the form would end correctly after too many bytes
	if err != nil {
		return "", err
	}
	var form bytes.Buffer
	m := multipart.NewWriter(&form)
	_, _ = m.CreateFormFile("file", disk.FileName(name)) // a buffer takes everything
	head := form.String()
	form.Reset()
	_ = m.Close()
	tail := form.String()
	resp, err := r.send(ctx, "add", url.Values{
		// Unless all of these are set, CIDs differ between versions of the daemon.
		"cid-version": {"1"}, "raw-leaves": {"true"}, "chunker": {"size-" + r.chunk},
		"pin": {"true"}, "progress": {"false"}, "quieter": {"true"},
	}, web.Call{
		Header: http.Header{"Content-Type": {m.FormDataContentType()}},
		Size:   int64(len(head)) + size + int64(len(tail)),
		Body:   io.MultiReader(strings.NewReader(head), body, strings.NewReader(tail)),
	})
	if err != nil {
		return "", err
	}
	var last struct{ Hash string } // the last line describes the object
	if err := r.decode("add", resp, func(d *json.Decoder) error { return d.Decode(&last) }); err != nil {
		return "", err
	}
	if _, err := cid.Decode(last.Hash); err != nil {
		return "", fmt.Errorf("kubo: add on %s: answered %q instead of a CID: %w", r.At.Host, last.Hash, err)
	}
	return system.Ref(last.Hash), nil
}

// peers returns the ids of the connected peers.
func (r *rpc) peers(ctx context.Context) (map[string]bool, error) {
	var s struct{ Peers []struct{ Peer string } }
	err := r.json(ctx, "swarm/peers", nil, &s)
	ids := map[string]bool{}
	for _, p := range s.Peers {
		ids[p.Peer] = true
	}
	return ids, err
}

// Apart implements daemon.API.
func (r *rpc) Apart(ctx context.Context, addresses []string) (apart []string, err error) {
	there, err := r.peers(ctx)
	for _, a := range addresses {
		if at, err := peer.AddrInfoFromString(a); err == nil && !there[at.ID.String()] {
			apart = append(apart, a)
		}
	}
	return apart, err
}

// Part implements daemon.API.
func (r *rpc) Part(ctx context.Context) error {
	there, err := r.peers(ctx)
	for id := range there {
		err = errors.Join(err, r.swarm(ctx, "disconnect", "/p2p/"+id))
	}
	return err
}

// Count implements daemon.API from bitswap's counters: duplicate blocks count twice.
func (r *rpc) Count(ctx context.Context) (member.Counts, error) {
	var s struct {
		DataReceived, DataSent int64
		Peers                  []string
	}
	err := r.json(ctx, "bitswap/stat", nil, &s)
	return member.Counts{Received: s.DataReceived, Sent: s.DataSent, Held: -1, Peers: len(s.Peers)}, err
}

// Fetch implements daemon.API with pin/add, which walks the graph, keeps every block and reports
// progress twice a second.
func (r *rpc) Fetch(ctx context.Context, t *member.Content) error {
	resp, err := r.call(ctx, "pin/add", url.Values{"arg": {string(t.Ref)}, "progress": {"true"}})
	if err != nil {
		return err
	}
	pinned := false
	err = r.decode("pin/add", resp, func(d *json.Decoder) error {
		var p struct {
			Pins     []string
			Progress int   // blocks
			Bytes    int64 // in these blocks
		}
		if err := d.Decode(&p); err != nil {
			return err
		}
		pinned = pinned || len(p.Pins) > 0
		if p.Progress == 0 {
			return nil
		}
		if err := r.measure(ctx, t); err != nil {
			return err
		}
		t.Blocks(p.Bytes)
		return nil
	})
	if err == nil && !pinned {
		err = fmt.Errorf("kubo: pin/add on %s: ended without a pin: %w", r.At.Host, system.ErrAnswer)
	}
	if err != nil {
		return err
	}
	return r.measure(ctx, t)
}

// measure gets the sizes of content and graph from the root, once the root is there.
func (r *rpc) measure(ctx context.Context, t *member.Content) error {
	if t.State().Size >= 0 {
		return nil
	}
	var s struct{ Size, CumulativeSize int64 }
	err := r.json(ctx, "files/stat", url.Values{"arg": {"/ipfs/" + string(t.Ref)}, "offline": {"true"}}, &s)
	if err == nil {
		t.SetSize(s.Size, max(s.CumulativeSize-s.Size, 0))
	}
	return err
}

func arg(ref system.Ref) url.Values { return url.Values{"arg": {string(ref)}} }

// valid checks that a ref is a CID.
func valid(ref system.Ref) error { return member.CID(name, ref) }
