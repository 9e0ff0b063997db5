package sia

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// Endpoint returns the API that options `url` and `password` name: its address and the content of
// the environment variable.
func Endpoint(name string, opt system.Options) (base *url.URL, password string, err error) {
	base, err = url.Parse(opt["url"])
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" ||
		base.User != nil || strings.Trim(base.Path, "/") == "api" {
		return nil, "", fmt.Errorf("%s: option \"url\": %q is not the URL of a renter, such as http://127.0.0.1:9980",
			name, opt["url"])
	}
	password, set := os.LookupEnv(opt["password"])
	if !set {
		return nil, "", fmt.Errorf("%s: option \"password\": the environment variable %s is not set", name,
			opt["password"])
	}
	return base, password, nil
}

// BothOrNone returns the values of two options that must both be given, each at least 1, or both be
// omitted. It returns 0, 0 if they are omitted.
func BothOrNone(name string, opt system.Options, first, second string) (a, b int64, err error) {
	a, b = opt.Int(first), opt.Int(second)
	if (a == 0) != (b == 0) {
		return 0, 0, fmt.Errorf("%s: options `%s` and `%s` are %d and %d: give both, each at least 1, or none", name,
			first, second, a, b)
	}
	return a, b, nil
}

// Plan describes a private network to start.
type Plan struct {
	Hosts, HostSize int64
	Data, Total     int64 // pieces that rebuild a part of an object, and all its pieces
}

// PlanOf returns the plan of options `hosts` and `host_size`, which must be a multiple of unit.
// data and total are the requested pieces; 0 means one, and one on each host. For a running renter,
// the plan has only the pieces.
func PlanOf(name string, opt system.Options, data, total, unit int64) (Plan, error) {
	p := Plan{Data: data, Total: total}
	if opt["url"] != "" {
		return p, nil
	}
	p.Hosts, p.HostSize = opt.Int("hosts"), opt.Int("host_size")
	if data == 0 {
		p.Data, p.Total = 1, p.Hosts
	}
	switch {
	case p.Total > p.Hosts:
		return p, fmt.Errorf("%s: %d pieces need as many hosts, there are %d: %w", name, p.Total, p.Hosts, system.ErrTooFew)
	case p.HostSize%unit != 0:
		return p, fmt.Errorf("%s: option \"host_size\": %d is not a multiple of %d MiB", name, p.HostSize, unit>>20)
	}
	return p, nil
}

// Check returns the problems with the plan and with the programs to start or, if option `url` is
// given, with reaching that renter.
func Check(ctx context.Context, i system.Info, opt system.Options, plan func(system.Options) (Plan, error),
	programs func() error) []system.Problem {
	var base *url.URL
	_, err := plan(opt)
	if err == nil && opt["url"] != "" {
		base, _, err = Endpoint(i.Name, opt)
	}
	switch {
	case err != nil:
		return system.WrongOptions(i.Name, err)
	case base != nil:
		return web.Unreachable(ctx, i.Name, []string{web.HostPort(base)})
	}
	return i.Missing(programs())
}

// Attach connects to the renter that the options name. node checks it and fills in its identity.
func Attach(ctx context.Context, name string, d system.Deployment, plan func(system.Options) (Plan, error),
	connect Connector, node func(a *API, p Plan, identity map[string]string) (group.Node, error),
) (system.Cluster, error) {
	p, err := plan(d.Options)
	if err != nil {
		return nil, err
	}
	base, password, err := Endpoint(name, d.Options)
	if err != nil {
		return nil, err
	}
	a := connect(base, password, d.Client)
	identity := map[string]string{"endpoint": base.Host, "currency": "SC", "sector": strconv.Itoa(Sector)}
	n, err := node(a, p, identity)
	if err != nil {
		a.Close()
	}
	return group.One(identity, n, err)
}
