package renterd

import (
	"context"
	"fmt"
	"net/http"
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
	if err := n.api.Get(ctx, "/bus/state", nil, &state); err != nil {
		return err
	}
	identity["version"] = fmt.Sprintf("renterd %s (%s)", state.Version, state.Commit)
	identity["network"] = state.Network
	if err := n.api.Synced(ctx, "/bus/consensus/state"); err != nil {
		return err
	}
	if err := n.bucketIsThere(ctx); err != nil {
		return err
	}
	var settings uploadSettings
	if err := n.api.Get(ctx, settingsPath, nil, &settings); err != nil {
		return err
	}
	minimum, total, err := settings.redundancy()
	if err != nil {
		return err
	}
	if n.asked != nil { // what it names is checked to be a number
		minimum, _ = strconv.ParseInt(n.asked.Get("minshards"), 10, 64)
		total, _ = strconv.ParseInt(n.asked.Get("totalshards"), 10, 64)
	}
	n.total = total
	identity["redundancy"] = fmt.Sprintf("%d of %d shards", minimum, total)
	identity["connections"] = "the node keeps its sessions with hosts"
	if n.Write {
		if err := n.enough(ctx, total); err != nil {
			return err
		}
	}
	return n.pack(ctx, opt["packing"], settings, identity)
}

const settingsPath = "/bus/settings/upload"

// bucketIsThere asks for the list of buckets: listing the objects of one that
// does not exist is answered as if it were empty.
func (n *node) bucketIsThere(ctx context.Context) error {
	var all []bucket
	if err := n.api.Get(ctx, "/bus/buckets", nil, &all); err != nil {
		return err
	}
	if !slices.Contains(all, bucket{n.bucket}) {
		return fmt.Errorf("renterd: %s has no bucket %q (it has %d others); make it (POST /api/bus/buckets), or set option `bucket`", n.api.Base.Host, n.bucket, len(all))
	}
	return nil
}

// enough checks that uploads find a host for each of total shards.
func (n *node) enough(ctx context.Context, total int64) error {
	contracts, err := n.contracts(ctx)
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
		return fmt.Errorf("renterd: %s has %d usable contracts, and %d shards need as many: %w", n.api.Base.Host, good, total, system.ErrTooFew)
	}
	return nil
}

// pack brings packing to what the experiment asks for, if it may.
func (n *node) pack(ctx context.Context, want string, settings uploadSettings, identity map[string]string) error {
	on, err := settings.packing()
	if err != nil {
		return err
	}
	is := map[bool]string{true: "on", false: "off"}
	identity["packing"] = is[on]
	if want == "keep" || want == is[on] {
		return nil
	}
	if !n.Write {
		return fmt.Errorf("renterd: packing is %s on %s, and %s is asked for: %w; set it there yourself (PUT /api/bus/settings/upload), or permit it by `allow: [write]` in the experiment file", is[on], n.api.Base.Host, want, system.ErrReadOnly)
	}
	changed, err := settings.with(!on)
	if err != nil {
		return err
	}
	// From here on they must be put back, also when the answer is lost.
	n.settingsBack = func(ctx context.Context) error {
		return n.api.Send(ctx, http.MethodPut, settingsPath, nil, settings, nil)
	}
	if err := n.api.Send(ctx, http.MethodPut, settingsPath, nil, changed, nil); err != nil {
		return err
	}
	var now uploadSettings
	if err := n.api.Get(ctx, settingsPath, nil, &now); err != nil {
		return err
	}
	if got, err := now.packing(); err != nil || got == on {
		return fmt.Errorf("renterd: packing stays %s on %s although the change was taken (%v)", is[on], n.api.Base.Host, err)
	}
	// The identity does not say that it was set here: a session that continues after
	// one that was killed finds it set, and must report the same system.
	identity["packing"] = want
	return nil
}
