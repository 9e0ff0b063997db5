// Package sia is what the two Sia renters, siad and renterd, have in common.
package sia

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// API is the HTTP API of a renter.
type API struct {
	System  string
	Base    *url.URL
	Header  http.Header
	Client  *web.Client       // waits as long as ctx allows: a put is answered when it is stored
	meaning func(error) error // adds what a status and its text mean
	alive   context.Context   // ends when a process of ours does; nil: we started none
}

// Connect makes an API without asking the daemon anything.
func Connect(
	name string, base *url.URL, header http.Header, password string, from testbed.Host, meaning func(error) error,
) (*API, error) {
	client, err := web.New(name, from.Dial, system.HTTPTarget{URL: base})
	if err != nil {
		return nil, err
	}
	return &API{
		System: name, Base: base, Header: web.Login(header, "", password), Client: client.Patient(), meaning: meaning,
	}, nil
}

// Close closes the connections.
func (a *API) Close() { a.Client.Close() }

// deathTime is how long the end of a process may take to be noticed after its connections broke.
const deathTime = 500 * time.Millisecond

// explain adds to an error what is behind it: a process that has ended, or what a status means.
func (a *API) explain(err error) error {
	if err == nil || web.Status(err) != 0 || a.alive == nil {
		return a.meaning(err)
	}
	if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		select {
		case <-a.alive.Done():
		case <-time.After(deathTime):
		}
	}
	return member.Explain(a.alive, err)
}

// URL is that of a path.
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

// Send sends in, as [web.Client.JSON] does.
func (a *API) Send(ctx context.Context, method, path string, query url.Values, in, out any) error {
	return a.explain(a.Client.JSON(ctx, method, a.URL(path, query), a.Header, in, out))
}

// List reads a long list of a report, as [web.Client.List] does.
func (a *API) List(ctx context.Context, path, field string, each func(*json.Decoder) error) error {
	return a.explain(a.Client.List(ctx, a.URL(path, nil), a.Header, field, each))
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

// Synced is an error unless the report at path says that the daemon has the whole chain.
func (a *API) Synced(ctx context.Context, path string) error {
	var c struct {
		Synced bool `json:"synced"`
	}
	if err := a.Get(ctx, path, nil, &c); err != nil {
		return err
	}
	if !c.Synced {
		return fmt.Errorf("%s: %s has not synced its chain: wait until GET %s says so", a.System, a.Base.Host, path)
	}
	return nil
}

// Report is a call of a poll: what read finds in the answer at path.
func Report[T any](a *API, name, path string, query url.Values, read func(answer T) []system.Reading) system.Call {
	return system.Call{Name: name, Read: func(ctx context.Context) ([]system.Reading, error) {
		var answer T
		if err := a.Get(ctx, path, query, &answer); err != nil {
			return nil, err
		}
		return read(answer), nil
	}}
}
