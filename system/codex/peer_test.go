package codex

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/daemon"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/replay"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

const background system.Ref = "zDvZRwzmBGgvtZJHARfeVAPfES1Dgz8VuS9Nixykff7w5S41cY9R" // 20 MiB

// peerAt returns a node of a swarm whose API is at address; its process only sleeps.
func peerAt(t *testing.T, address string, quiet time.Duration) *daemon.Peer[*api] {
	t.Helper()
	base, err := url.Parse(address)
	must(t, err)
	h := systemtest.Hosts(t, 1)[0]
	k := kind(system.Options{"block_retries": "1"}, "", codex, "")
	a := k.Client(h.Dial, base)
	a.quiet = quiet
	n := &daemon.Daemon[*api]{Process: member.Process{System: name, Label: "codex/node-1", Host: h}, API: a}
	must(t, n.Run(systemtest.Context(t), testbed.Command{Args: []string{"sleep", "600"}, Dir: t.TempDir()}))
	p := k.Peered(n)
	t.Cleanup(func() { must(t, p.Stop(context.Background())) })
	return p
}

// recordedPeer returns a node of a swarm that answers with these exchanges.
func recordedPeer(t *testing.T, quiet time.Duration, exchanges []replay.Exchange,
	opt ...replay.Option) *daemon.Peer[*api] {
	t.Helper()
	return peerAt(t, replay.Serve(t, exchanges, opt...).URL, quiet)
}

// TestFetchIsCountedInBlocks checks that the manifest counts as a block, but not as content.
func TestFetchIsCountedInBlocks(t *testing.T) {
	const size, file = 20 << 20, "07-background-network"
	polls := record(t, file, "poll space")
	a := recordedPeer(t, time.Minute, replay.Chain(
		record(t, file, "space on n2 before", "start the background download: answers at once with the manifest"),
		polls,
	)).API
	before, err := a.Count(systemtest.Context(t))
	must(t, err)
	task := member.NewContent(background, before)
	ctx, cancel := context.WithCancel(systemtest.Context(t))
	task.Begin(func(context.Context) {
		if err := a.Fetch(ctx, task); !errors.Is(err, context.Canceled) {
			t.Errorf("a fetch that was ended: %v", err)
		}
	})
	defer task.Stop()
	defer cancel()
	for end := time.Now().Add(brief); task.State().Size < 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the size was never known")
		}
	}
	var verified []int64
	for range polls {
		now, err := a.Count(ctx)
		if err != nil || now.Received != -1 {
			t.Fatalf("%+v, %v", now, err)
		}
		task.SetHeld(now)
		verified = append(verified, task.State().Verified)
		if task.State().Complete != (task.State().Verified == size) {
			t.Errorf("complete at %d of %d bytes: %v", task.State().Verified, int64(size), task.State().Complete)
		}
	}
	if want := []int64{0, 236 * blockSize, size}; !slices.Equal(verified, want) {
		t.Errorf("verified: %d, want %d", verified, want)
	}
}

// TestFetchOfNothingNeverHangs uses a node that never answers for a CID that does not exist.
func TestFetchOfNothingNeverHangs(t *testing.T) {
	empty := record(t, "02-info", "space of an empty node")
	p := recordedPeer(t, 200*time.Millisecond, replay.Chain(empty, only(record(t, "10-cid-errors",
		"unknown CID, client deadline 15 s"), "POST", "/network"), replay.Optional(empty)), replay.ByPath())
	begin := time.Now()
	must(t, p.Fetch(systemtest.Context(t), unknown, nil))
	if err := p.Fetch(systemtest.Context(t), medium, nil); err == nil {
		t.Error("two contents at a time, whose blocks look alike")
	}
	f, err := p.Progress(systemtest.Context(t), unknown)
	if err != nil || f.Size != -1 || f.Verified != 0 || f.Complete {
		t.Errorf("%+v, %v", f, err)
	}
	fails(t, "read back", p.ReadBack(systemtest.Context(t), unknown, io.Discard), system.ErrNotFound)
	if took := time.Since(begin); took > brief {
		t.Errorf("%v for what no node has", took)
	}
	for end := time.Now().Add(brief); ; time.Sleep(time.Millisecond) {
		f, err := p.Progress(systemtest.Context(t), unknown)
		must(t, err)
		if strings.Contains(f.Trouble, "no manifest") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it does not say that the manifest is not found: %+v", f)
		}
	}
}

// TestLostPeersAreReported checks that a node without a source for the rest is never complete and
// reports the reason all the time.
func TestLostPeersAreReported(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/codex/v1/debug/info", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"id":"x","addrs":["/ip4/127.0.0.1/tcp/1"]}`)
	})
	var asked atomic.Int64
	mux.HandleFunc("GET /api/codex/v1/space", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"totalBlocks":5}`)
	})
	mux.HandleFunc("POST /api/codex/v1/data/{cid}/network", func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			fmt.Fprintf(w, `{"cid":%q,"manifest":{"datasetSize":12582912}}`, r.PathValue("cid"))
			return
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "Error retries exhausted")
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p := peerAt(t, server.URL, 20*time.Millisecond)
	must(t, p.Fetch(systemtest.Context(t), background, nil))
	for end := time.Now().Add(brief); asked.Load() < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("asked %d times", asked.Load())
		}
	}
	for range 100 {
		f, err := p.Progress(systemtest.Context(t), background)
		if err != nil || f.Complete || f.Verified != 0 || f.Trouble == "" {
			t.Fatalf("%+v, %v", f, err)
		}
		time.Sleep(time.Millisecond)
	}
	fails(t, "read back", p.ReadBack(systemtest.Context(t), background, io.Discard), system.ErrNotFound)
}

func TestPublishThenForget(t *testing.T) {
	data := systemtest.Bytes("published", 1<<20)
	p := recordedPeer(t, time.Minute, replay.Chain(record(t, "02-info", "space of an empty node"),
		record(t, "03-upload", "upload 1MiB with filename"),
		record(t, "05-download-local", "local download 1MiB"), record(t, "09-delete", "delete 20 MiB")),
		replay.Instead(mediumSum, data), replay.Let(string(background), string(medium)))
	ref, err := p.Publish(systemtest.Context(t), "1MiB.bin", 1<<20, bytes.NewReader(data))
	if err != nil || ref != medium {
		t.Fatalf("%q, %v", ref, err)
	}
	if f, err := p.Progress(systemtest.Context(t), ref); err != nil || !f.Complete || f.Verified != 1<<20 {
		t.Errorf("%+v, %v", f, err)
	}
	var got bytes.Buffer
	if err := p.ReadBack(systemtest.Context(t), ref, &got); err != nil || !bytes.Equal(got.Bytes(), data) {
		t.Errorf("read back: %d bytes, %v", got.Len(), err)
	}
	must(t, p.Forget(systemtest.Context(t), ref))
	_, err = p.Progress(systemtest.Context(t), ref)
	fails(t, "progress of what was forgotten", err, system.ErrNotFound)
}
