package renterd

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// api is a renterd's HTTP API. All of it needs the password.
type api struct {
	base   *url.URL
	header http.Header
	client *web.Client
}

func connect(base *url.URL, password string, from testbed.Host) (*api, error) {
	client, err := web.New(name, from.Dial, system.HTTPTarget{URL: base})
	if err != nil {
		return nil, err
	}
	// An upload is answered when it is stored, and refused while it is sent.
	patient := client.Patient()
	client.Close()
	return &api{base: base, header: web.Login(nil, "", password), client: patient}, nil
}

// url is that of a route; key, an object's key or the beginning of some, ends it.
func (a *api) url(route, key string, query url.Values) *url.URL {
	u := *a.base
	u.Path = strings.TrimSuffix(a.base.Path, "/") + "/api/" + route + key // escaped when it is sent
	u.RawQuery = query.Encode()
	return &u
}

func (a *api) get(ctx context.Context, u *url.URL, out any) error {
	return explain(a.client.JSON(ctx, http.MethodGet, u, a.header, nil, out))
}

func (a *api) send(ctx context.Context, method string, u *url.URL, in, out any) error {
	return explain(a.client.JSON(ctx, method, u, a.header, in, out))
}

// contracts are the active ones; the answer is null before the first.
func (a *api) contracts(ctx context.Context) (all []contract, err error) {
	err = a.get(ctx, a.url("bus/contracts", "", nil), &all)
	return all, err
}
