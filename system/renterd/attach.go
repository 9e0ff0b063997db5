package renterd

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/plimsoll-project/plimsoll/system"
)

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
		if err := n.api.enough(ctx, total); err != nil {
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

// enough checks that uploads find a host for each of total shards.
func (a *api) enough(ctx context.Context, total int64) error {
	contracts, err := a.contracts(ctx)
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
		return fmt.Errorf("renterd: %s has %d usable contracts, and %d shards need as many: %w", a.base.Host, good, total, system.ErrTooFew)
	}
	return nil
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
	// The identity does not say that it was set here: a session that continues after
	// one that was killed finds it set, and must report the same system.
	identity["packing"] = want
	return nil
}
