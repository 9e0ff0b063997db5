package siad

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/replay"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

// Steps of the recording of a node that comes to a chain.
const (
	atZero    = "consensus at height 0"
	mining    = "poll consensus while mining"
	lonely    = "gateway before any peer"
	withPeers = "gateway with peers"
)

// watching attaches to a replay to follow it.
func watching(t *testing.T, steps []replay.Exchange) (system.Follower, error) {
	t.Helper()
	s := replay.Serve(t, steps, replay.Login("", secret))
	t.Setenv("PLIMSOLL_TEST_SIAD", secret)
	c, err := System{}.Attach(systemtest.Context(t), system.Deployment{
		Client: systemtest.Hosts(t, 1)[0], Follow: true, Options: system.Options{"url": s.URL, "password": "PLIMSOLL_TEST_SIAD"},
	})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if c.Identity()["version"] != "siad 1.5.9" {
		t.Errorf("identity %v", c.Identity())
	}
	return c.Nodes()[0].(system.Follower), nil
}

// synced is a recorded state with the other word about being synced.
func synced(e replay.Exchange, is bool) replay.Exchange {
	for _, old := range []string{`"synced": true`, `"synced":true`} {
		word := `"synced":true`
		if !is {
			word = `"synced":false`
		}
		e.Answer.Body.Text = strings.Replace(e.Answer.Body.Text, old, word, 1)
	}
	e.Answer.Header = http.Header{"Content-Type": {"application/json"}} // the length is another
	return e
}

// TestWatched goes with a node from its first block, and without a peer, to where
// it says that it is synced. Nothing but two reports is asked for.
func TestWatched(t *testing.T) {
	rec := replay.Load(t, "testdata/follow.jsonl")
	states := replay.Steps(rec, mining)
	steps := replay.Chain(
		replay.Steps(rec, "version"), replay.Steps(rec, atZero)[:1],
		[]replay.Exchange{synced(replay.Steps(rec, atZero)[0], false)}, replay.Steps(rec, lonely),
		[]replay.Exchange{synced(states[1], false)}, replay.Steps(rec, withPeers),
		states[len(states)-1:], replay.Steps(rec, withPeers),
	)
	n, err := watching(t, steps)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []system.Following{
		{Height: 0, Tip: genesis159},
		{Height: 5, Tip: "00000021eca220b2bab4030f3813165cf5e6000584a8dee525927d82d6b71dc8", Connected: 4},
		{Height: 28, Tip: "0000004382805acac6e2f41842bf54326337a94064c86047aac13964203915c1", Connected: 4, Synced: true},
	} {
		f, err := n.Following(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if f.Height != want.Height || f.Tip != want.Tip || f.Connected != want.Connected || f.Synced != want.Synced ||
			f.Target != -1 || f.Indexed != -1 || f.Commits != -1 || f.TimedOut != -1 || f.Failed != -1 || f.Trouble != "" || len(f.Peers) != 0 {
			t.Errorf("%+v, want %+v", f, want)
		}
	}
	if _, ok := n.(system.ChainNode); ok {
		t.Error("what is only watched can be started and ended")
	}
}

// TestWatchedThatCannotBe: what answers there is not what could be followed.
func TestWatchedThatCannotBe(t *testing.T) {
	rec := replay.Load(t, "testdata/follow.jsonl")
	version, state := replay.Steps(rec, "version"), replay.Steps(rec, atZero)[0]
	with := func(old, now string) replay.Exchange {
		e := state
		text := strings.ReplaceAll(e.Answer.Body.Text, `": `, `":`)
		if !strings.Contains(text, old) {
			t.Fatalf("the recording has no %s", old)
		}
		e.Answer.Body.Text = strings.Replace(text, old, now, 1)
		e.Answer.Header = http.Header{"Content-Type": {"application/json"}}
		return e
	}
	off := only(t, replay.Load(t, "testdata/attach.jsonl"), wrong, "/miner/start", 0)[0]
	off.Path, off.Method = "/consensus", http.MethodGet
	page := state
	page.Answer = replay.Answer{Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: replay.Body{Text: "<!doctype html><title>nginx</title>"}}
	for name, c := range map[string]struct {
		answer replay.Exchange
		is     error
		words  string
	}{
		"the consensus is off": {off, nil, "runs without that module"},
		"a page":               {page, system.ErrHTML, ""},
		"an underflow":         {with(`"height":0`, `"height":18446744073709551597`), system.ErrAnswer, "no height"},
		"a negative height":    {with(`"height":0`, `"height":-1`), system.ErrAnswer, "no height"},
		"half a height":        {with(`"height":0`, `"height":0.5`), system.ErrAnswer, "no height"},
		"no height":            {with(`"height":0`, `"depth":0`), system.ErrAnswer, "no height"},
		"no identity":          {with(genesis159, "0x1234"), system.ErrAnswer, "no block's identity"},
		"no tip":               {with(`"currentblock"`, `"block"`), system.ErrAnswer, "no block's identity"},
		"null":                 {state.JSON(200, nil), system.ErrAnswer, "no height"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := watching(t, replay.Chain(version, []replay.Exchange{c.answer}))
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.words) || strings.Contains(err.Error(), secret) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestJoin: a peer that found us first is as good as one that we found.
func TestJoin(t *testing.T) {
	rec := replay.Of(replay.Load(t, "testdata/follow.jsonl"), "host1")
	d := replayed(t, replay.Chain(
		replay.Steps(rec, "connect to the renter node (peer address in the path)"), replay.Steps(rec, "connect again"), replay.Steps(rec, "connect to a dead address"),
	))
	for range 2 {
		if err := d.join(t.Context(), "127.0.0.1:21001"); err != nil {
			t.Error(err)
		}
	}
	if err := d.join(t.Context(), "127.0.0.1:9"); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v", err)
	}
}
