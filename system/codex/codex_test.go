package codex

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func TestConformance(t *testing.T) {
	systemtest.Run(t, systemtest.Suite{System: System{}, Namespaces: true, Truths: systemtest.Truths{
		MinSize:           1,
		Unknown:           []system.Ref{unknown},
		Malformed:         []system.Ref{small[:len(small)-4], small + "/exists"},
		DeleteTakesShared: true,
		CutOffStays:       true,
		Without:           []string{"spread", "restart"},
	}})
}

func TestSwarm(t *testing.T) {
	systemtest.RunSwarm(t, systemtest.Swarm{System: System{}, Namespaces: true})
}

func TestBadOptions(t *testing.T) {
	hosts := systemtest.Hosts(t, 2)
	for url, mode := range map[string]system.Mode{
		"127.0.0.1:8080":                     system.Attach, // no URL
		"http://127.0.0.1:8080/api/codex/v1": system.Attach, // the path would be ignored
		"http://127.0.0.1:8080":              system.Start,
	} {
		d := system.Deployment{Hosts: hosts[:1], Client: hosts[1], Dir: t.TempDir(), Options: system.Options{"url": url}}
		if _, err := system.Begin(t.Context(), System{}, mode, d); err == nil {
			t.Errorf("%s with %s: no error", mode, url)
		}
	}
}

// TestPrivate checks the flags that keep a node off public networks and from removing its data.
func TestPrivate(t *testing.T) {
	full, err := System{}.Info().Fill(nil)
	must(t, err)
	const older, newer = "--listen-addrs --disc-port", "--listen-ip --listen-port --no-bootstrap-node"
	for _, c := range []struct {
		flags     string
		ip        string
		bootstrap string
		want, not []string
	}{
		{older, "10.0.0.1", "", []string{"--listen-addrs=/ip4/10.0.0.1/tcp/2", "--disc-port=3"},
			[]string{"--bootstrap-node", "--no-bootstrap-node"}},
		{older, "fd00::1", "spr:x", []string{"--listen-addrs=/ip6/fd00::1/tcp/2", "--bootstrap-node=spr:x"}, nil},
		{newer, "10.0.0.1", "", []string{"--no-bootstrap-node", "--listen-ip=10.0.0.1", "--listen-port=2"},
			[]string{"--disc-port", "--listen-addrs"}},
		{newer, "10.0.0.1", "spr:x", []string{"--bootstrap-node=spr:x"}, []string{"--no-bootstrap-node"}},
	} {
		args, err := arguments(full, c.flags, netip.MustParseAddr(c.ip), "/d", []int{1, 2, 3}, c.bootstrap)
		must(t, err)
		for _, want := range append(c.want, "--nat=extip:"+c.ip, "--api-bindaddr="+c.ip, "--block-ttl=30d",
			"--storage-quota=8192mb", "--block-retries=3000") { // with 15, a real node lost blocks that only had to wait
			if !slices.Contains(args, want) {
				t.Errorf("%s: %v lack %s", c.flags, args, want)
			}
		}
		for _, not := range c.not {
			if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, not) }) {
				t.Errorf("%s: %v have %s", c.flags, args, not)
			}
		}
	}
	if _, err := arguments(full, "--network", netip.MustParseAddr("10.0.0.1"), "/d", []int{1, 2, 3}, ""); err == nil {
		t.Error("a node that would join a public network")
	}
	full["quota"] = "1000"
	if _, err := arguments(full, older, netip.MustParseAddr("10.0.0.1"), "/d", []int{1, 2, 3}, ""); err == nil {
		t.Error("a quota that is no number of MiB")
	}
}

// TestNamesAreTaken checks that no file name is one that the node refuses (isValidFilename of its
// library), and that all can be decoded.
func TestNamesAreTaken(t *testing.T) {
	refused := regexp.MustCompile(`(?i)[/\\:*?"<>|^\x00]|^$|^ | $|\.$|[ .]\.[^.]*$|` +
		`^(con|prn|aux|nul|(com|lpt)[0-9])(\.[^.]*)?$`)
	for _, name := range []string{
		".", "..", "...", "a.", "a..b", "a..", "a.b.", ".hidden", " ", "a b", "a/b", `a\b`, `"`, "CON:", "é",
		"con", "CON", "Con.txt", "con..", "con.tar.gz", "aux", "nul.bin", "prn", "com0", "LPT9.x", "com", "lpt",
	} {
		if file := fileName(name); refused.MatchString(file) || disk.Name(file) != name {
			t.Errorf("%q: %s is refused, or the name of %q", name, file, disk.Name(file))
		}
	}
	for _, name := range []string{"1MiB.bin", "a.b.c", "console.log", "com10"} { // refs depend on the name
		if file := fileName(name); file != name {
			t.Errorf("%q became %q", name, file)
		}
	}
}
