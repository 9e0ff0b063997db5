// Package sia contains what the two Sia renters, siad and renterd, have in common.
package sia

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// API is the HTTP API of a renter or of a host.
type API struct {
	System    string
	Base      *url.URL
	Header    http.Header
	Client    *web.Client // waits as long as ctx allows, because a put is answered only when it is stored
	Consensus string      // path of the report on the chain, which is answered as soon as all other calls are
	Meanings  []Meaning
	alive     context.Context // ends with the daemon's process; nil if this run did not start it
}

// Meaning is the meaning of an answer with a status and a text.
type Meaning struct {
	Status int    // 0: any
	Text   string // contained in the answer
	Means  error  // nil if there is only a hint
	Hint   string
}

// Connect returns an API without contacting the daemon.
func Connect(a API, password string, from testbed.Host) *API {
	(&http.Request{Header: a.Header}).SetBasicAuth("", password)
	a.Client = web.Patient(a.System, from.Dial)
	return &a
}

// Close closes the connections.
func (a *API) Close() { a.Client.Close() }

// explain adds the cause to an error: the meaning of a status, or the end of a process.
func (a *API) explain(err error) error {
	e, ok := errors.AsType[*web.StatusError](err)
	if !ok {
		return member.Explain(a.alive, err)
	}
	for _, m := range a.Meanings {
		if m.Status != 0 && m.Status != e.Status || !strings.Contains(e.Text, m.Text) {
			continue
		}
		if m.Means != nil {
			err = fmt.Errorf("%w: %w", err, m.Means)
		}
		if m.Hint != "" {
			err = fmt.Errorf("%w; %s", err, m.Hint)
		}
		break
	}
	return err
}

// URL returns the URL of a path.
func (a *API) URL(path string, query url.Values) *url.URL {
	u := *a.Base
	u.Path = strings.TrimSuffix(a.Base.Path, "/") + path // escaped when it is sent
	u.RawQuery = query.Encode()
	return &u
}

// Get reads a report.
func (a *API) Get(ctx context.Context, path string, query url.Values, out any) error {
	return a.explain(a.Client.JSON(ctx, http.MethodGet, a.URL(path, query), a.Header, nil, out))
}

// Send sends in and decodes the answer into out, as [web.Client.JSON] does.
func (a *API) Send(ctx context.Context, method, path string, query url.Values, in, out any) error {
	return a.explain(a.Client.JSON(ctx, method, a.URL(path, query), a.Header, in, out))
}

// Post sends in and ignores the answer.
func (a *API) Post(ctx context.Context, path string, in any) error {
	return a.Send(ctx, http.MethodPost, path, nil, in, nil)
}

// Download writes an answer's body to w.
func (a *API) Download(ctx context.Context, path string, query url.Values, w io.Writer) (n int64, err error) {
	resp, err := a.Client.Open(ctx, web.Call{Method: http.MethodGet, URL: a.URL(path, query), Header: a.Header})
	if err == nil {
		defer resp.Body.Close()
		n, err = a.Client.Copy(resp, w)
	}
	return n, a.explain(err)
}

// Upload sends size bytes of r.
func (a *API) Upload(ctx context.Context, method, path string, query url.Values, size int64, r io.Reader) error {
	header := a.Header.Clone()
	header.Set("Content-Type", "application/octet-stream")
	_, err := a.Client.Call(ctx, web.Call{Method: method, URL: a.URL(path, query), Header: header, Body: r, Size: size})
	return a.explain(err)
}

// Synced returns an error unless the daemon reports that it has the whole chain.
func (a *API) Synced(ctx context.Context) error {
	var c struct {
		Synced bool `json:"synced"`
	}
	err := a.Get(ctx, a.Consensus, nil, &c)
	if err == nil && !c.Synced {
		err = fmt.Errorf("%s: %s has not synced its chain: wait until GET %s says so", a.System, a.Base.Host,
			a.Consensus)
	}
	return err
}

// The pause between two calls is 2 % of the time waited so far (1/share), and at least shortest. 10
// s take about 240 calls, and an hour 540.
const (
	shortest = 5 * time.Millisecond
	share    = 50
)

// Poll calls done until it returns ok. It returns late by at most 2 % of the wait or 5 ms, plus the
// time of one answer. An error of done ends the wait. If ctx ends it, the error names what Poll
// waited for and the last state that done returned.
func Poll(ctx context.Context, system, what string, done func(ctx context.Context) (ok bool, state string,
	err error)) error {
	last, from := "no answer", time.Now()
	for {
		ok, state, err := done(ctx)
		switch {
		case err == nil && ok:
			return nil
		case err == nil:
			last = state
		case ctx.Err() == nil:
			return err
		}
		if !timing.Pause(ctx, max(time.Since(from)/share, shortest)) {
			return fmt.Errorf("%s: %s: %w (last: %s)", system, what, context.Cause(ctx), last)
		}
	}
}
