package kubo

import (
	"encoding/json"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// TestPrivate pins what keeps a node from the public network.
func TestPrivate(t *testing.T) {
	repo := disk.Dir{Files: testbed.LocalFiles{}, Path: t.TempDir()}
	path := repo.Sub(configFile).Path
	before := `{"Identity": {"PeerID": "12D3"}, "Bootstrap": ["/dnsaddr/bootstrap.example"], "Swarm": {"ConnMgr": {}}, "Discovery": {"MDNS": {"Enabled": true}}}`
	must(t, os.WriteFile(path, []byte(before), 0o600))
	must(t, configure(t.Context(), repo, netip.MustParseAddr("fd00::1"), []int{1, 2, 3}))
	b, err := os.ReadFile(path)
	must(t, err)
	var c struct {
		Identity  struct{ PeerID string }
		Bootstrap []string
		Routing   struct{ Type string }
		Addresses struct {
			API   string
			Swarm []string
		}
		Discovery struct{ MDNS struct{ Enabled *bool } }
		Swarm     struct {
			ConnMgr    *struct{}
			Transports struct{ Network map[string]bool }
		}
	}
	must(t, json.Unmarshal(b, &c))
	if c.Identity.PeerID != "12D3" || c.Swarm.ConnMgr == nil {
		t.Errorf("lost what was there: %s", b)
	}
	if len(c.Bootstrap) != 0 || c.Routing.Type != "none" || c.Discovery.MDNS.Enabled == nil ||
		*c.Discovery.MDNS.Enabled || c.Swarm.Transports.Network["QUIC"] {
		t.Errorf("it would look for others: %s", b)
	}
	if c.Addresses.API != "/ip6/fd00::1/tcp/1" || !slices.Equal(c.Addresses.Swarm, []string{"/ip6/fd00::1/tcp/3"}) {
		t.Errorf("addresses: %+v", c.Addresses)
	}
	if !slices.Contains(environment("/repo"), "LIBP2P_FORCE_PNET=1") {
		t.Error("a node that lost its key would join the public network")
	}
}
