package renterd

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/plimsoll-project/plimsoll/system"
)

// attach checks what would otherwise show late or not at all.
func (n *node) attach(ctx context.Context, packing string, identity map[string]string) error {
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
	minimum, total := settings.Redundancy.Min, settings.Redundancy.Total
	if minimum < 1 || total < minimum {
		return fmt.Errorf("renterd: GET %s of %s reports no redundancy", settingsPath, n.api.Base.Host)
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
	return n.packs(packing, settings, identity)
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
		return fmt.Errorf("renterd: %s has no bucket %q (it has %d others); make it (POST /api/bus/buckets), or set "+
			"option `bucket`", n.api.Base.Host, n.bucket, len(all))
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
		return fmt.Errorf("renterd: %s has %d usable contracts, and %d shards need as many: %w", n.api.Base.Host, good,
			total, system.ErrTooFew)
	}
	return nil
}

// packs checks that packing is what the experiment asks for.
func (n *node) packs(want string, settings uploadSettings, identity map[string]string) error {
	if settings.Packing.Enabled == nil {
		return fmt.Errorf("renterd: GET %s of %s does not say whether packing is on", settingsPath, n.api.Base.Host)
	}
	is := map[bool]string{true: "on", false: "off"}[*settings.Packing.Enabled]
	identity["packing"] = is
	if want != "keep" && want != is {
		return fmt.Errorf("renterd: option `packing` is %s, and packing is %s on %s; change it there (PUT /api%s), "+
			"or the option", want, is, n.api.Base.Host, settingsPath)
	}
	return nil
}
