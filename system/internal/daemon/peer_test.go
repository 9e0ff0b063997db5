package daemon

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

var must = systemtest.Must

var nowhere = &url.URL{Scheme: "http", Host: "127.0.0.1:1"}

// fake is a daemon.
type fake struct {
	API
	web    *web.Client
	counts Counts
	dead   bool // the peer "dead" does not answer
}

func (f *fake) Client() *web.Client { return f.web }

func (f *fake) Address(context.Context) (string, error) { return "", nil }

func (f *fake) Count(context.Context) (Counts, error) { return f.counts, nil }

func (f *fake) Apart(_ context.Context, peers []string) ([]string, error) { return peers, nil }

func (f *fake) Connect(ctx context.Context, address string) error {
	if f.dead && address == "dead" {
		<-ctx.Done()
		return errors.New("dial tcp 10.0.0.7:4001: i/o timeout")
	}
	return nil
}

// host calls started when its daemon starts.
type host struct {
	testbed.Host
	started func()
}

func (h *host) Start(context.Context, testbed.Command) (testbed.Process, error) {
	h.started()
	return process{}, nil
}

type process struct{ testbed.Process }

func (process) Done() <-chan struct{} { return nil }

func (process) Stop(context.Context) error { return nil }

// peered has one content, "ref", of 100 bytes.
func peered(t *testing.T, f *fake, complete bool) *Peer[*fake] {
	t.Helper()
	var err error
	if f.web, err = web.New("x", nil, system.HTTPTarget{URL: nowhere}); err != nil {
		t.Fatal(err)
	}
	k := &Kind[*fake]{Name: "x", Ref: func(system.Ref) error { return nil }}
	p := k.Peered(&Daemon[*fake]{Process: member.Process{Host: &host{started: func() {}}}, API: f})
	must(t, p.run(t.Context()))
	task := p.task("ref", f.counts)
	task.Know(100, 0)
	if complete {
		task.finish()
	}
	return p
}

// TestDeadPeers: one delays the others by no more than dialTime.
func TestDeadPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{dead: true}
		p := peered(t, f, false)
		task := p.task("ref", f.counts)
		task.from = []string{"dead", "alive"}
		begin := time.Now()
		p.dial(t.Context(), task)
		if took := time.Since(begin); took > dialTime {
			t.Errorf("one dead peer holds the others up for %v", took)
		}
	})
}

// TestCountsBeginAnew: nothing negative is received while a daemon starts again.
func TestCountsBeginAnew(t *testing.T) {
	f := &fake{counts: Counts{Received: 500, Sent: 50}}
	p := peered(t, f, true)
	p.Host.(*host).started = func() {
		f.counts = Counts{}
		if got, err := p.Progress(t.Context(), "ref"); err != nil || got.Received != 0 || got.Sent != 0 {
			t.Errorf("%+v, %v", got, err)
		}
	}
	must(t, p.Restart(t.Context(), true))
}
