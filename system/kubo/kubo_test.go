package kubo

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func TestConformance(t *testing.T) {
	systemtest.Run(t, systemtest.Suite{System: System{}, Truths: systemtest.Truths{
		Unknown:          []system.Ref{unknown},
		Malformed:        []system.Ref{medium[:len(medium)-4], medium + "/x"},
		ContentAddressed: true,
		PutPassesServer:  true, // the client's own node accepts it
		Without:          []string{"spread", "restart"},
	}})
}

func TestSwarm(t *testing.T) {
	systemtest.RunSwarm(t, systemtest.Swarm{System: System{}})
}

// live starts two real nodes in namespaces.
func live(t *testing.T, opt system.Options) private {
	t.Helper()
	systemtest.Need(t, System{}, opt)
	return systemtest.Start(t, System{}, opt, systemtest.HostsOf(t, testbed.Options{}, 2)).Nodes()[0].(private)
}

// TestLiveColdReads checks that an object crosses the link again after Cool, completely.
func TestLiveColdReads(t *testing.T) {
	const size = 3<<20 + 7
	n := live(t, nil)
	data := systemtest.Bytes("cold", size)
	ref, err := n.Put(systemtest.Context(t), "cold", size, bytes.NewReader(data))
	must(t, err)
	must(t, n.Cool(systemtest.Context(t), ref))
	before, err := n.Near().Used(systemtest.Context(t))
	must(t, err)
	wantContent(t, n, ref, data)
	if after, err := n.Near().Used(systemtest.Context(t)); err != nil || after-before < size {
		t.Errorf("the client's repo grew by %d bytes when it read %d that it did not have (%v)", after-before, size, err)
	}
}

// TestPrivate checks the settings that keep a node off the public network.
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

// TestEndlessAnswer checks that an endless answer does not fill the memory.
func TestEndlessAnswer(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := io.WriteString(w, `{"ID": "`)
		for x := bytes.Repeat([]byte("x"), 1<<20); err == nil; {
			_, err = w.Write(x)
		}
	}))
	defer srv.Close()
	u, err := url.Parse(srv.URL)
	must(t, err)
	r := kind(nil, "").Client((&net.Dialer{}).DialContext, u)
	defer r.Web.Close()
	if _, err := r.id(systemtest.Context(t)); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("an endless answer: %v", err)
	}
}

// TestSameErrorSameKind checks that an answer with the words of two kinds always is of the same one.
func TestSameErrorSameKind(t *testing.T) {
	said := &web.StatusError{Status: 500, Message: "could not find a block: write: no space left on device"}
	for range 100 {
		if err := classify(said); !errors.Is(err, system.ErrQuota) {
			t.Fatalf("%v", err)
		}
	}
}
