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
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/pair"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// rpc is the RPC of one node.
type rpc struct {
	web    *web.Client
	base   *url.URL
	layout layout
}

var _ pair.API = (*rpc)(nil)

// layout is how a file becomes blocks: without all of these set CIDs differ
// between versions of the daemon.
type layout struct {
	cidVersion, rawLeaves, chunk string
}

func newRPC(dial web.Dial, base *url.URL, l layout) (*rpc, error) {
	c, err := web.New(name, dial, system.HTTPTarget{URL: base})
	if err != nil {
		return nil, err
	}
	// How long an answer may take to begin is ours to say: pin/add and repo/gc
	// answer when they are done.
	return &rpc{web: c.Patient(), base: base, layout: l}, nil
}

// URL implements pair.API.
func (r *rpc) URL() *url.URL { return r.base }

// Client implements pair.API.
func (r *rpc) Client() *web.Client { return r.web }

// call makes a call; a status other than 2xx is an error. 200 is not success
// yet: the caller reads the body with finish, or decodes it.
func (r *rpc) call(ctx context.Context, command string, args url.Values) (*http.Response, error) {
	return r.send(ctx, command, args, web.Call{})
}

// send makes a call with the header and body of with.
func (r *rpc) send(ctx context.Context, command string, args url.Values, with web.Call) (*http.Response, error) {
	u := *r.base
	u.Path, u.RawQuery = "/api/v0/"+command, args.Encode()
	with.Method, with.URL = http.MethodPost, &u
	resp, err := r.web.Open(ctx, with)
	return resp, classify(err)
}

// classify distinguishes errors by the daemon's words, since every status is 500.
func classify(err error) error {
	var e *web.StatusError
	if !errors.As(err, &e) {
		return err
	}
	for words, kind := range map[string]error{
		"path does not have enough components": system.ErrBadRef,
		"invalid cid":                          system.ErrBadRef,
		"could not find":                       system.ErrNotFound,
		"no link named":                        system.ErrNotFound,
		"context deadline exceeded":            system.ErrNotFound, // of its option timeout: it found nothing in time
		"no space left on device":              system.ErrQuota,
	} {
		if strings.Contains(e.Said, words) {
			return fmt.Errorf("%w: %w", err, kind)
		}
	}
	return err
}

// late is the error that came after the head: a well-formed 200 ends with it.
func (r *rpc) late(command string, resp *http.Response) error {
	if said := resp.Trailer.Get("X-Stream-Error"); said != "" {
		return fmt.Errorf("kubo: %s on %s: after status 200: %s", command, r.base.Host, said)
	}
	return nil
}

// json makes a call and decodes its answer; of several values the last counts.
func (r *rpc) json(ctx context.Context, command string, args url.Values, out any) error {
	resp, err := r.call(ctx, command, args)
	if err != nil {
		return err
	}
	return r.decode(command, resp, func(d *json.Decoder) error { return d.Decode(out) })
}

// decode calls next for each value of an answer.
func (r *rpc) decode(command string, resp *http.Response, next func(*json.Decoder) error) error {
	defer resp.Body.Close()
	d := json.NewDecoder(web.Bounded(resp.Body))
	values := 0
	for {
		err := next(d)
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("kubo: %s on %s: answer: %w", command, r.base.Host, err)
		}
		values++
	}
	if err := r.late(command, resp); err != nil {
		return err
	}
	if values == 0 { // options that it cannot parse give an empty 200
		return fmt.Errorf("kubo: %s on %s: status 200 and an empty answer: %w", command, r.base.Host, io.ErrUnexpectedEOF)
	}
	return nil
}

// quiet makes a call whose answer only says that it is done.
func (r *rpc) quiet(ctx context.Context, command string, args url.Values) error {
	resp, err := r.call(ctx, command, args)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return fmt.Errorf("kubo: %s on %s: %w", command, r.base.Host, err)
	}
	return r.late(command, resp)
}

// identity is a node's account of itself.
type identity struct {
	ID           string
	Addresses    []string // with its id at the end
	AgentVersion string
}

func (r *rpc) id(ctx context.Context) (identity, error) {
	var i identity
	err := r.json(ctx, "id", nil, &i)
	return i, err
}

// swarm connects to or disconnects from a peer, which answers 200 also when it
// did not.
func (r *rpc) swarm(ctx context.Context, what, address string) error {
	var answer struct{ Strings []string }
	if err := r.json(ctx, "swarm/"+what, url.Values{"arg": {address}}, &answer); err != nil {
		return err
	}
	if len(answer.Strings) != 1 || !strings.HasSuffix(answer.Strings[0], " success") {
		return fmt.Errorf("kubo: swarm/%s on %s: %s: %s", what, r.base.Host, address, strings.Join(answer.Strings, "; "))
	}
	return nil
}

// Connect implements pair.API.
func (r *rpc) Connect(ctx context.Context, address string) error {
	return r.swarm(ctx, "connect", address)
}

// Address implements pair.API: a multiaddress with the node's id.
func (r *rpc) Address(ctx context.Context) (string, error) {
	i, err := r.id(ctx)
	if err != nil {
		return "", err
	}
	if len(i.Addresses) == 0 {
		return "", fmt.Errorf("kubo: id on %s: it has no address", r.base.Host)
	}
	return i.Addresses[0], nil
}

// Ping implements pair.API.
func (r *rpc) Ping(ctx context.Context) error {
	_, err := r.id(ctx)
	return err
}

// Has implements pair.API: it asks for the object's root.
func (r *rpc) Has(ctx context.Context, ref system.Ref) (bool, error) {
	err := r.quiet(ctx, "block/stat", url.Values{"arg": {string(ref)}, "offline": {"true"}})
	if errors.Is(err, system.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Local implements pair.API.
func (r *rpc) Local(ctx context.Context, ref system.Ref) error {
	resp, err := r.call(ctx, "cat", url.Values{"arg": {string(ref)}, "offline": {"true"}})
	if err == nil {
		resp.Body.Close()
	}
	return err
}

// Remove implements pair.API: the pin, and all blocks that no other pin has.
func (r *rpc) Remove(ctx context.Context, ref system.Ref) error {
	err := r.quiet(ctx, "pin/rm", url.Values{"arg": {string(ref)}})
	if err != nil && !strings.Contains(err.Error(), "not pinned") {
		return err
	}
	return r.quiet(ctx, "repo/gc", url.Values{"quiet": {"true"}})
}

// Used implements pair.API, without walking over the repo.
func (r *rpc) Used(ctx context.Context) (int64, error) {
	var s struct{ RepoSize int64 }
	err := r.json(ctx, "repo/stat", url.Values{"size-only": {"true"}}, &s)
	return s.RepoSize, err
}

// Store implements pair.API: it imports and pins a file.
func (r *rpc) Store(ctx context.Context, name string, size int64, content io.Reader) (system.Ref, error) {
	body, err := web.Exactly(content, size) // or the form would end as it should behind bytes that are too many
	if err != nil {
		return "", err
	}
	var form bytes.Buffer
	m := multipart.NewWriter(&form)
	if _, err := m.CreateFormFile("file", disk.FileName(name)); err != nil {
		return "", err
	}
	head := form.String()
	form.Reset()
	if err := m.Close(); err != nil {
		return "", err
	}
	tail := form.String()
	resp, err := r.send(ctx, "add", url.Values{
		"cid-version": {r.layout.cidVersion}, "raw-leaves": {r.layout.rawLeaves}, "chunker": {"size-" + r.layout.chunk},
		"pin": {"true"}, "progress": {"false"}, "quieter": {"true"},
	}, web.Call{
		Header: http.Header{"Content-Type": {m.FormDataContentType()}},
		Size:   int64(len(head)) + size + int64(len(tail)),
		Body:   io.MultiReader(strings.NewReader(head), body, strings.NewReader(tail)),
	})
	if err != nil {
		return "", err
	}
	var last struct{ Hash string } // the last line is the object
	if err := r.decode("add", resp, func(d *json.Decoder) error { return d.Decode(&last) }); err != nil {
		return "", err
	}
	if _, err := cid.Decode(last.Hash); err != nil {
		return "", fmt.Errorf("kubo: add on %s: answered %q instead of a CID: %w", r.base.Host, last.Hash, err)
	}
	return system.Ref(last.Hash), nil
}

// peers are the ids of those who are connected.
func (r *rpc) peers(ctx context.Context) (map[string]bool, error) {
	var s struct{ Peers []struct{ Peer string } }
	if err := r.json(ctx, "swarm/peers", nil, &s); err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	for _, p := range s.Peers {
		ids[p.Peer] = true
	}
	return ids, nil
}

// copy writes an answer's body to w: the end of it may be an error.
func (r *rpc) copy(command string, ref system.Ref, resp *http.Response, w io.Writer) (int64, error) {
	defer resp.Body.Close()
	got, err := io.Copy(w, resp.Body)
	if err == nil {
		err = r.late(command, resp)
	}
	if err != nil {
		return got, fmt.Errorf("kubo: %s of %s: after %d bytes: %w", command, ref, got, truncated(err))
	}
	return got, nil
}

// truncated makes the ways in which an answer ends early one: a chunked one
// that ends without its last line is an error of its own in net/http.
func truncated(err error) error {
	if !errors.Is(err, io.ErrUnexpectedEOF) && strings.Contains(err.Error(), "unexpected EOF") {
		return fmt.Errorf("%w: %w", err, io.ErrUnexpectedEOF)
	}
	return err
}

// valid checks that a ref is a CID.
func valid(ref system.Ref) error {
	if _, err := cid.Decode(string(ref)); err != nil {
		return fmt.Errorf("kubo: %q is not a CID (%w): %w", ref, err, system.ErrBadRef)
	}
	return nil
}
