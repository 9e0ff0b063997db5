package kubo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// rpc is the RPC of one node.
type rpc struct {
	web  *web.Client
	base *url.URL
}

func newRPC(dial web.Dial, base *url.URL) (*rpc, error) {
	c, err := web.New(name, dial, system.HTTPTarget{URL: base})
	if err != nil {
		return nil, err
	}
	// How long an answer may take to begin is ours to say: pin/add and repo/gc
	// answer when they are done.
	return &rpc{web: c.Patient(), base: base}, nil
}

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

// classify tells errors apart by the daemon's words, since every status is 500.
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

// quiet makes a call whose answer only tells that it is done.
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

// has tells whether the node holds an object's root, without asking others.
func (r *rpc) has(ctx context.Context, ref system.Ref) (bool, error) {
	err := r.quiet(ctx, "block/stat", url.Values{"arg": {string(ref)}, "offline": {"true"}})
	if errors.Is(err, system.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func (r *rpc) unpin(ctx context.Context, ref system.Ref) error {
	err := r.quiet(ctx, "pin/rm", url.Values{"arg": {string(ref)}})
	if err != nil && strings.Contains(err.Error(), "not pinned") {
		return nil
	}
	return err
}

func (r *rpc) gc(ctx context.Context) error {
	return r.quiet(ctx, "repo/gc", url.Values{"quiet": {"true"}})
}

// repoSize is what the node's repo holds, in bytes, without walking over it.
func (r *rpc) repoSize(ctx context.Context) (int64, error) {
	var s struct{ RepoSize int64 }
	err := r.json(ctx, "repo/stat", url.Values{"size-only": {"true"}}, &s)
	return s.RepoSize, err
}
