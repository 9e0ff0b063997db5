package renterd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// System implements system.System.
type System struct{}

var (
	_ system.System     = System{}
	_ system.HTTPServer = (*node)(nil)
	_ system.Healther   = (*node)(nil)
	_ system.Ranger     = (*node)(nil)
	_ system.Deleter    = (*node)(nil)
	_ system.Lister     = (*node)(nil)
	_ system.Stater     = (*node)(nil)
	_ system.Settler    = (*node)(nil)
	_ system.Cooler     = (*node)(nil)
	_ system.Stats      = (*node)(nil)
	_ system.Coster     = (*node)(nil)
	_ system.Provider   = provider{}
)

// Check implements system.System.
func (s System) Check(ctx context.Context, opt system.Options) []system.Problem {
	base, _, err := s.endpoint(opt)
	if err == nil {
		_, err = redundancy(opt)
	}
	if err != nil {
		return []system.Problem{{What: err.Error(), Hint: "mend the `with:` of system renterd in the experiment file"}}
	}
	return web.Unreachable(ctx, name, []string{web.HostPort(base)})
}

// Start implements system.System.
func (System) Start(context.Context, system.Deployment) (system.Cluster, error) {
	return nil, errors.New("renterd: it is not started here: it needs a chain, funds and hosts around it; run one, and name it with mode: attach")
}

// Attach implements system.System.
func (s System) Attach(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt, err := s.Info().Fill(d.Options)
	if err != nil {
		return nil, err
	}
	base, password, err := s.endpoint(opt)
	if err != nil {
		return nil, err
	}
	asked, err := redundancy(opt)
	if err != nil {
		return nil, err
	}
	a, err := connect(base, password, d.Client)
	if err != nil {
		return nil, err
	}
	n := &node{
		api: a, bucket: opt["bucket"], prefix: strings.TrimPrefix(opt["prefix"], "/"), asked: asked, write: d.Write, every: pollEvery, page: pageSize,
		ours: map[system.Ref]int64{}, theirs: map[system.Ref]bool{},
	}
	identity := map[string]string{"endpoint": base.Host, "bucket": n.bucket, "prefix": n.prefix}
	if err := n.attach(ctx, opt, identity); err != nil {
		return nil, errors.Join(err, n.Stop(context.WithoutCancel(ctx)))
	}
	return group.Start(ctx, 1, identity, func(context.Context, int) (group.Node, error) {
		if n.write {
			return n, nil
		}
		return provider{n}, nil
	})
}

// attach checks what would otherwise show late or not at all, and changes
// settings last.
func (n *node) attach(ctx context.Context, opt system.Options, identity map[string]string) error {
	var state struct {
		Version string `json:"version"`
		Commit  string `json:"commit"`
		Network string `json:"network"`
	}
	if err := n.api.get(ctx, n.api.url("bus/state", "", nil), &state); err != nil {
		return err
	}
	identity["version"] = fmt.Sprintf("renterd %s (%s)", state.Version, state.Commit)
	identity["network"] = state.Network
	if err := n.api.synced(ctx); err != nil {
		return err
	}
	if err := n.bucketIsThere(ctx); err != nil {
		return err
	}
	var settings uploadSettings
	if err := n.api.get(ctx, n.settings(), &settings); err != nil {
		return err
	}
	minimum, total, err := settings.redundancy()
	if err != nil {
		return fmt.Errorf("renterd: %w", err)
	}
	if n.asked != nil { // what it names is checked to be a number
		minimum, _ = strconv.ParseInt(n.asked.Get("minshards"), 10, 64)
		total, _ = strconv.ParseInt(n.asked.Get("totalshards"), 10, 64)
	}
	n.total = total
	identity["redundancy"] = fmt.Sprintf("%d of %d shards", minimum, total)
	identity["connections"] = "the node keeps its sessions with hosts"
	if n.write {
		if err := n.writable(ctx, total); err != nil {
			return err
		}
	}
	return n.pack(ctx, opt["packing"], settings, identity)
}

func (n *node) settings() *url.URL { return n.api.url("bus/settings/upload", "", nil) }

// bucketIsThere asks for the list of buckets: listing the objects of one that
// does not exist is answered as if it were empty.
func (n *node) bucketIsThere(ctx context.Context) error {
	var all []bucket
	if err := n.api.get(ctx, n.api.url("bus/buckets", "", nil), &all); err != nil {
		return err
	}
	if !slices.Contains(all, bucket{n.bucket}) {
		return fmt.Errorf("renterd: %s has no bucket %q (it has %d others); make it (POST /api/bus/buckets), or set option `bucket`", n.api.base.Host, n.bucket, len(all))
	}
	return nil
}

// writable checks that uploads find enough hosts, and learns what must not be
// written over.
func (n *node) writable(ctx context.Context, total int64) error {
	contracts, err := n.api.contracts(ctx)
	if err != nil {
		return err
	}
	good := int64(0)
	for _, c := range contracts {
		if c.Usability == "good" {
			good++
		}
	}
	if good < total {
		return fmt.Errorf("renterd: %s has %d usable contracts, and %d shards need as many: %w", n.api.base.Host, good, total, system.ErrTooFew)
	}
	there, err := n.List(ctx)
	for _, o := range there {
		n.theirs[o.Ref] = true
	}
	return err
}

// pack brings packing to what the experiment asks for, if it may.
func (n *node) pack(ctx context.Context, want string, settings uploadSettings, identity map[string]string) error {
	on, err := settings.packing()
	if err != nil {
		return fmt.Errorf("renterd: %w", err)
	}
	is := map[bool]string{true: "on", false: "off"}
	identity["packing"] = is[on]
	if want == "keep" || want == is[on] {
		return nil
	}
	if !n.write {
		return fmt.Errorf("renterd: packing is %s on %s, and %s is asked for: %w; set it there yourself (PUT /api/bus/settings/upload), or permit it by `allow: [write]` in the experiment file", is[on], n.api.base.Host, want, system.ErrReadOnly)
	}
	changed, err := settings.with(!on)
	if err != nil {
		return fmt.Errorf("renterd: %w", err)
	}
	// From here on they must be put back, also when the answer is lost.
	n.settingsBack = func(ctx context.Context) error {
		return n.api.send(ctx, http.MethodPut, n.settings(), settings, nil)
	}
	if err := n.api.send(ctx, http.MethodPut, n.settings(), changed, nil); err != nil {
		return err
	}
	var now uploadSettings
	if err := n.api.get(ctx, n.settings(), &now); err != nil {
		return err
	}
	if got, err := now.packing(); err != nil || got == on {
		return fmt.Errorf("renterd: packing stays %s on %s although the change was taken (%v)", is[on], n.api.base.Host, err)
	}
	identity["packing"] = want + " (set for this run; it was " + is[on] + ")"
	return nil
}

func (s System) endpoint(opt system.Options) (base *url.URL, password string, err error) {
	if opt, err = s.Info().Fill(opt); err != nil {
		return nil, "", err
	}
	base, err = url.Parse(opt["url"])
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" || base.User != nil || strings.Trim(base.Path, "/") == "api" {
		return nil, "", fmt.Errorf("renterd: option \"url\": %q is not the URL of a node, such as http://127.0.0.1:9980", opt["url"])
	}
	password, set := os.LookupEnv(opt["password"])
	if !set {
		return nil, "", fmt.Errorf("renterd: option \"password\": the environment has no variable %s", opt["password"])
	}
	return base, password, nil
}

// redundancy is what uploads ask for; nil: the node's own.
func redundancy(opt system.Options) (url.Values, error) {
	minimum, err1 := opt.Int("min_shards")
	total, err2 := opt.Int("total_shards")
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("renterd: %w", err)
	}
	if minimum == 0 && total == 0 {
		return nil, nil
	}
	if minimum < 1 || total < minimum || total > 255 {
		return nil, fmt.Errorf("renterd: options `min_shards` and `total_shards` are %d and %d: wanted 1 ≤ min ≤ total ≤ 255", minimum, total)
	}
	return url.Values{"minshards": {strconv.FormatInt(minimum, 10)}, "totalshards": {strconv.FormatInt(total, 10)}}, nil
}
