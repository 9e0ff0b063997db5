package siad

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// api is one siad's HTTP API.
type api struct {
	base   *url.URL
	header http.Header
	client *web.Client     // waits as long as ctx allows: reports of a full renter have taken minutes
	alive  context.Context // ends when a process of ours does; nil: we started none
}

// connect makes an api without asking the daemon anything.
func connect(base *url.URL, password string, from testbed.Host) (*api, error) {
	client, err := web.New(name, from.Dial, system.HTTPTarget{URL: base})
	if err != nil {
		return nil, err
	}
	// Any other agent is refused: "Browser access disabled".
	header := web.Login(http.Header{"User-Agent": {"Sia-Agent"}}, "", password)
	patient := client.Patient()
	client.Close()
	return &api{base: base, header: header, client: patient}, nil
}

func (a *api) close() { a.client.Close() }

func (a *api) url(path string, query url.Values) *url.URL {
	u := *a.base
	u.Path = strings.TrimSuffix(a.base.Path, "/") + path // escaped when it is sent
	u.RawQuery = query.Encode()
	return &u
}

// get reads a report. Reports need no password, so that a wrong one goes unnoticed.
func (a *api) get(ctx context.Context, path string, query url.Values, out any) error {
	return a.explain(a.client.JSON(ctx, http.MethodGet, a.url(path, query), a.header, nil, out))
}

// list reads a long list of a report, as [web.Client.List] does.
func (a *api) list(ctx context.Context, path, field string, each func(*json.Decoder) error) error {
	return a.explain(a.client.List(ctx, a.url(path, nil), a.header, field, each))
}

// post sends a form. Its success, 204, says that the order was taken, not that
// it was carried out.
func (a *api) post(ctx context.Context, path string, form url.Values, out any) error {
	if form == nil {
		return a.explain(a.client.JSON(ctx, http.MethodPost, a.url(path, nil), a.header, nil, out))
	}
	return a.explain(a.client.JSON(ctx, http.MethodPost, a.url(path, nil), a.header, form, out))
}

// upload sends size bytes of r.
func (a *api) upload(ctx context.Context, path string, query url.Values, size int64, r io.Reader) error {
	header := a.header.Clone()
	header.Set("Content-Type", "application/octet-stream")
	_, err := a.client.Call(ctx, web.Call{Method: http.MethodPost, URL: a.url(path, query), Header: header, Body: r, Size: size})
	return a.explain(err)
}

// download writes an answer's body to w.
func (a *api) download(ctx context.Context, path string, query url.Values, w io.Writer) error {
	resp, err := a.client.Open(ctx, web.Call{Method: http.MethodGet, URL: a.url(path, query), Header: a.header})
	if err != nil {
		return a.explain(err)
	}
	defer resp.Body.Close()
	return a.explain(a.client.Copy(resp, w))
}

// checkPassword asks for something that is refused without the password and
// does nothing with it: a download to nowhere.
func (a *api) checkPassword(ctx context.Context) error {
	err := a.get(ctx, "/renter/download/plimsoll-password-check", nil, nil)
	switch web.Status(err) {
	case http.StatusBadRequest, http.StatusInternalServerError:
		return nil // the password was right, the download is not
	}
	if err == nil {
		return fmt.Errorf("siad: %s took a download without a destination: it is no siad v1.5", a.base.Host)
	}
	return err
}
