package renterd

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/replay"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// recordedHost has the address of the recorded host.
type recordedHost struct{ testbed.Host }

func (recordedHost) Addr() netip.Addr { return netip.MustParseAddr("100.77.0.1") }

// form forms a network on replays of the node and of one host.
func form(ctx context.Context, t *testing.T, renter, host []replay.Exchange) (blocks int, err error) {
	t.Helper()
	opt, err := System{}.Info().Fill(nil)
	must(t, err)
	p, err := planOf(opt)
	must(t, err)
	n := on(t, renter)
	n.bucket = "default"
	h := daemon{Daemon: &sia.Daemon{
		API: on(t, host).API, Store: disk.Dir{Path: "/tmp/rec/storage-1/store"},
		Process: member.Process{Host: recordedHost{}},
	}}
	err = n.form(ctx, []daemon{h}, p, false, time.Millisecond, func(context.Context) error { blocks++; return nil })
	return blocks, err
}

// TestNetworkForms forms a private network in the required order with the answers of a real one
// (renterd v2.9.3, hostd v2.10.2). A call out of order fails.
func TestNetworkForms(t *testing.T) {
	t.Parallel()
	rec := replay.Load(t, "testdata/network.jsonl")
	r, h := replay.Of(rec, "renterd"), replay.Of(rec, "host1")
	host := replay.Chain(replay.Steps(h, "add a volume"), replay.Poll(replay.Steps(h, "poll the volume")),
		replay.Steps(h, "accept contracts"))
	settings := replay.Steps(r, "list buckets", "make the bucket", "upload settings as they are",
		"set packing and redundancy",
		"autopilot as it is", "enable the autopilot")
	known := replay.Poll(replay.Steps(r, "poll hosts until all are known"))
	contracts, trigger := replay.Steps(r, "poll contracts"), replay.Steps(r, "trigger the autopilot")
	accounts := replay.Poll(replay.Steps(r, "poll accounts"))
	blocks, err := form(systemtest.Context(t), t,
		replay.Chain(settings, known, contracts[:1], trigger[:1], contracts[1:2], trigger[1:], contracts[2:], accounts),
		host)
	must(t, err)
	if least := len(known) + len(contracts) + len(accounts); blocks < least {
		t.Errorf("%d blocks were made, with %d states", blocks, least)
	}
	// A network that does not form fails in time, and the error tells what it waited for.
	for what, steps := range map[string][]replay.Exchange{
		"hosts did not become known: too slow (last: 0 of 3)": known[:1],
		"contracts were not formed: too slow (last: 0 of 3)": replay.Chain(known,
			replay.Optional(replay.Chain(contracts[:1], trigger[:1]))),
	} {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, errors.New("too slow"))
		defer cancel()
		_, err := form(ctx, t, replay.Chain(settings, steps), host)
		fails(t, "forming", err, nil, what)
	}
}

// fakePrograms are two programs that print what they were given, and exit.
func fakePrograms(t *testing.T) system.Options {
	t.Helper()
	opt := system.Options{}
	for option, variables := range map[string]string{"binary": "RENTERD_API_PASSWORD RENTERD_SEED " +
		"RENTERD_CONFIG_FILE RENTERD_NETWORK", hostd: ""} {
		path := filepath.Join(t.TempDir(), option)
		script := "#!/bin/sh\nfor v in " + variables + "; do eval test -n \\\"\\$$v\\\" || echo without $v; done\n" +
			"ls consensus.db && cat $RENTERD_CONFIG_FILE\necho cannot open the wallet\nexit 5\n"
		must(t, os.WriteFile(path, []byte(script), 0o755))
		opt[option] = path
	}
	return opt
}

// TestDaemonThatDies checks that a daemon finds the chain and a configuration that joins no public
// network, and that its end is in the error.
func TestDaemonThatDies(t *testing.T) {
	hosts := systemtest.HostsOf(t, testbed.Options{}, 2)
	d := system.Deployment{Hosts: hosts[:1], Client: hosts[1], Dir: t.TempDir(), Options: fakePrograms(t)}
	_, err := system.Begin(systemtest.Context(t), System{}, system.Start, d)
	fails(t, "start", err, nil, "renterd: ", "exit status 5", "consensus.db", "network: zen", "bootstrap: false",
		"explorer: {disable: true}", "cannot open the wallet")
	if strings.Contains(fmt.Sprint(err), "without ") {
		t.Error(err)
	}
	for _, program := range []string{name, hostd} {
		b, err := configs.ReadFile(program + ".yml")
		must(t, err)
		c := string(b)
		if !strings.Contains(c, "bootstrap: false") || !strings.Contains(c, "explorer: {disable: true}") ||
			!strings.Contains(c, "autoOpenWebUI: false") {
			t.Errorf("it may join a public network:\n%s", c)
		}
	}
}
