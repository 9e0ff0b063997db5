package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

var nowhere = &url.URL{Scheme: "http", Host: "127.0.0.1:1"}

// fake is a daemon.
type fake struct {
	API
	web    *web.Client
	counts Counts
	dead   bool // the peer "dead" does not answer
	head   time.Duration
	body   io.Reader
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

func (f *fake) Local(ctx context.Context, _ system.Ref) (*http.Response, error) {
	if !member.Sleep(ctx, f.head) {
		return nil, ctx.Err()
	}
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
	go func() {
		if _, err := io.Copy(w, f.body); err == nil {
			w.Close()
		}
	}()
	return &http.Response{Body: r, Request: &http.Request{URL: nowhere}}, nil
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
	k := &Kind[*fake]{Name: "x", Ref: func(system.Ref) error { return nil }, stallAfter: 30 * time.Second}
	p := k.Peered(&Daemon[*fake]{Process: member.Process{Host: &host{started: func() {}}}, API: f})
	must(t, p.run(t.Context()))
	task := p.task("ref", f.counts)
	task.Know(100, 0)
	if complete {
		task.finish()
	}
	return p
}

// TestReadBackIsPatient: a daemon that has it all and is busy is never "not found"; one that
// falls silent within its answer is stalled.
func TestReadBackIsPatient(t *testing.T) {
	for name, c := range map[string]struct {
		more func(stop <-chan struct{}) io.Reader
		want error
	}{
		"busy":   {func(<-chan struct{}) io.Reader { return strings.NewReader("") }, nil},
		"silent": {func(stop <-chan struct{}) io.Reader { return silence(stop) }, system.ErrStalled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stop := make(chan struct{})
				defer close(stop)
				p := peered(t, &fake{head: 10 * time.Minute, body: io.MultiReader(strings.NewReader("bytes"),
					c.more(stop))}, true)
				var got bytes.Buffer
				begin := time.Now()
				err := p.ReadBack(t.Context(), "ref", &got)
				if !errors.Is(err, c.want) || got.String() != "bytes" {
					t.Errorf("%q, %v; want %v", got.String(), err, c.want)
				}
				if took := time.Since(begin); c.want != nil && took != 10*time.Minute+30*time.Second {
					t.Errorf("given up after %v", took)
				}
			})
		})
	}
}

// silence gives nothing until it is closed.
type silence <-chan struct{}

func (s silence) Read([]byte) (int, error) {
	<-s
	return 0, io.ErrUnexpectedEOF
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
