package renterd

import (
	"context"
	"fmt"
	"slices"
)

// attach checks in advance for problems that would otherwise appear late or never.
func (n *node) attach(ctx context.Context, packing string, identity map[string]string) error {
	var state struct {
		Version string `json:"version"`
		Commit  string `json:"commit"`
		Network string `json:"network"`
	}
	if err := n.API.Get(ctx, "/bus/state", nil, &state); err != nil {
		return err
	}
	identity["version"] = fmt.Sprintf("renterd %s (%s)", state.Version, state.Commit)
	identity["network"] = state.Network
	if err := n.API.Synced(ctx); err != nil {
		return err
	}
	if err := n.bucketIsThere(ctx); err != nil {
		return err
	}
	var settings uploadSettings
	if err := n.API.Get(ctx, settingsPath, nil, &settings); err != nil {
		return err
	}
	if n.asked == nil {
		n.minimum, n.total = settings.Redundancy.Min, settings.Redundancy.Total
	}
	if n.minimum < 1 || n.total < n.minimum {
		return fmt.Errorf("renterd: GET %s of %s reports no redundancy", settingsPath, n.API.Base.Host)
	}
	identity["redundancy"] = fmt.Sprintf("%d of %d shards", n.minimum, n.total)
	identity["connections"] = "the node keeps its sessions with hosts"
	is := map[bool]string{true: "on", false: "off"}[settings.Packing.Enabled]
	identity["packing"] = is
	if packing != "keep" && packing != is {
		return fmt.Errorf("renterd: option `packing` is %s, and packing is %s on %s; change it there (PUT /api%s), "+
			"or the option", packing, is, n.API.Base.Host, settingsPath)
	}
	return nil
}

const settingsPath = "/bus/settings/upload"

// bucketIsThere returns an error if the bucket does not exist. It reads the list of buckets,
// because listing the objects of a missing bucket is answered as if it were empty.
func (n *node) bucketIsThere(ctx context.Context) error {
	var all []bucket
	if err := n.API.Get(ctx, "/bus/buckets", nil, &all); err != nil {
		return err
	}
	if !slices.Contains(all, bucket{n.bucket}) {
		return fmt.Errorf("renterd: %s has no bucket %q (it has %d others); make it (POST /api/bus/buckets), or set "+
			"option `bucket`", n.API.Base.Host, n.bucket, len(all))
	}
	return nil
}
