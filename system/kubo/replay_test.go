package kubo

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/replay"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

var must = systemtest.Must

const (
	small   system.Ref = "bafkreier3prmz5dttuvkywyp7wruow3lc65gj4z46x3hms6kscgbdvo6qa" // 1 KiB
	medium  system.Ref = "bafybeiazvl7ugmwztok5cddgkay3b2p73cn3a4zhddq4a25qozjobxmkvm" // 1 MiB
	large   system.Ref = "bafybeigjq4yrvbkyllsiawlnjjxrap2hu4oiyoswo42l7seotfkllktooy" // 100 MiB
	unknown system.Ref = "bafkreidipufnnamncp6bmihozrn2ocqcovvkrgehjk2ysb6ipsgbv5dld4"

	first  = "12D3KooWLVUZoDZLq1ofCCj49tJWs7qnYxvKL1VirosHi1mn6QQp" // the node whose id was recorded
	second = "12D3KooWAEDHhK2AA9tD1r3YAAnhLGrCz6wXugeTmopMr9AqNLUk" // the node that the first connects to
)

// brief is how long tests wait for an event that must not occur: longer than a busy machine takes
// for one that occurs.
const brief = 3 * time.Second

// made returns the beginning of a recorded content.
func made(label string, size int64) []byte { return replay.Made("plimsoll/kubo/"+label, size) }

func record(t *testing.T, file string, steps ...string) []replay.Exchange {
	t.Helper()
	return replay.Steps(replay.Load(t, "testdata/"+file+".jsonl"), steps...)
}

// asked returns one recorded exchange with another query.
func asked(t *testing.T, file, step string, query url.Values) replay.Exchange {
	t.Helper()
	e := record(t, file, step)[0]
	e.Query = query
	return e
}

func limits(near *replay.Server) system.Options {
	return system.Options{"url": near.URL, "not_found_after": "30s"}
}

// fails checks that err is of a kind, and not system.ErrNotFound unless that is the kind.
func fails(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) || kind != system.ErrNotFound && errors.Is(err, system.ErrNotFound) {
		t.Errorf("%s: error %v, want %v", what, err, kind)
	}
}

func wantContent(t *testing.T, n system.Getter, ref system.Ref, want []byte) {
	t.Helper()
	var got bytes.Buffer
	if err := n.Get(systemtest.Context(t), ref, &got); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("get %s: %d bytes of %d, %v", ref, got.Len(), len(want), err)
	}
}

func joined(t *testing.T, opt system.Options, write bool) system.Store {
	t.Helper()
	c, err := systemtest.Attach(t, System{}, opt, write)
	must(t, err)
	return c.Nodes()[0].(system.Store)
}

// one attaches to a single node with these exchanges after the greeting.
func one(t *testing.T, exchanges []replay.Exchange, bodies ...[]byte) *node {
	t.Helper()
	near := replay.Serve(t, replay.Chain(record(t, "02-id-version-config", "id", "id"), exchanges),
		replay.Content(bodies...))
	return joined(t, limits(near), true).(*node)
}

// two attaches to the client's node and one on the server, as if Plimsoll had started them, so that
// objects can be evicted and deleted.
func two(t *testing.T, near, far []replay.Exchange, opt ...replay.Option) private {
	t.Helper()
	n := replay.Serve(t, replay.Chain(record(t, "02-id-version-config", "id", "id"),
		record(t, "03-swarm", "connect-n1-n2"), near), opt...)
	id := record(t, "02-id-version-config", "id", "id")
	f := replay.Serve(t, replay.Chain(id, far), append(opt, replay.Let(first, second),
		replay.Let("/tcp/14001", "/tcp/14002"))...)
	o := limits(n)
	o["server_url"] = f.URL
	return private{joined(t, o, true).(seeding)}
}

func TestPutAndGet(t *testing.T) {
	data := made("1KiB", 1024)
	n := one(t, replay.Chain(record(t, "04-add", "1KiB-v1-raw-256k-pin"), record(t, "05-cat-local", "1KiB")), data)
	ref, err := n.Put(systemtest.Context(t), "1KiB.bin", 1024, bytes.NewReader(data))
	if err != nil || ref != small {
		t.Fatalf("%q, %v", ref, err)
	}
	wantContent(t, n, ref, data)
}

func TestReadOnlyWhenNotAllowed(t *testing.T) {
	n := joined(t, limits(replay.Serve(t, record(t, "02-id-version-config", "id", "id"))), false)
	_, err := n.Put(t.Context(), "x", 1, strings.NewReader("x"))
	fails(t, "put", err, system.ErrReadOnly)
	for _, n := range []any{n, seeding{}} { // repo/gc would remove unpinned foreign data
		if _, ok := n.(system.Deleter); ok {
			t.Errorf("%T deletes", n)
		}
		if _, ok := n.(system.Cooler); ok {
			t.Errorf("%T cools", n)
		}
	}
}

func TestDiskFull(t *testing.T) {
	e := record(t, "04-add", "1KiB-v1-raw-256k-pin")
	e[0].Answer = record(t, "11-faults", "n4-add-64MiB-on-40MiB-disk")[0].Answer
	data := made("1KiB", 1024)
	_, err := one(t, e, data).Put(systemtest.Context(t), "1KiB.bin", 1024, bytes.NewReader(data))
	fails(t, "put", err, system.ErrQuota)
}

// TestReadsThatFail checks how Get handles answers without an object.
func TestReadsThatFail(t *testing.T) {
	const arrived = 20 << 20
	killed := []replay.Exchange{asked(t, "11-faults", "n2-cat-100MiB-provider-killed", arg(large))}
	changed := func(change func(*replay.Answer)) []replay.Exchange {
		e := killed[0]
		e.Answer.Header = e.Answer.Header.Clone()
		change(&e.Answer)
		return []replay.Exchange{e}
	}
	silence := record(t, "06-errors", "cat-unknown-cid-client-deadline-15s")
	for name, c := range map[string]struct {
		answers []replay.Exchange
		ref     system.Ref
		after   time.Duration // option not_found_after; 0: 30 s
		closed  bool          // there are no other nodes
		bytes   int64         // bytes that arrive
		want    error         // nil: none of the kinds
		says    string
	}{
		"an error in the trailer of a 200": {killed, large, 0, false, arrived, nil, "context deadline exceeded"},
		"fewer bytes than X-Content-Length": {changed(func(a *replay.Answer) { a.Trailer = nil }), large, 0,
			false, arrived, io.ErrUnexpectedEOF, ""},
		"no X-Content-Length": {changed(func(a *replay.Answer) { a.Trailer = nil; a.Header.Del("X-Content-Length") }),
			large, 0, false, arrived, io.ErrUnexpectedEOF, ""},
		"an option it cannot parse: 200, nothing": {[]replay.Exchange{asked(t, "06-errors", "bad-timeout-value",
			arg(small))}, small, 0, false, 0, io.ErrUnexpectedEOF, ""},
		"unknown, no answer in the time given": {silence, unknown, brief, false, 0, system.ErrNotFound,
			"no answer for 3s"},
		"unknown, no node has it": {nil, unknown, time.Minute, true, 0, system.ErrNotFound, "none of the nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := one(t, c.answers, made("100MiB", max(c.bytes, 1)))
			n.Closed, n.NotFoundAfter = c.closed, cmp.Or(c.after, n.NotFoundAfter)
			var got bytes.Buffer
			err := n.Get(systemtest.Context(t), c.ref, &got)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || c.want != system.ErrNotFound &&
				errors.Is(err, system.ErrNotFound) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if int64(got.Len()) != c.bytes || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%d bytes of %d, %v, want %q", got.Len(), c.bytes, err, c.says)
			}
		})
	}
}

func TestMalformedCID(t *testing.T) {
	n := one(t, record(t, "06-errors", "cat-malformed-cid", "cat-truncated-cid", "cat-empty-arg"))
	// The daemon's answer to a CID that passes our check.
	for _, ref := range []system.Ref{"not-a-cid", medium[:len(medium)-4], ""} {
		_, err := n.Near().call(systemtest.Context(t), "cat", arg(ref))
		fails(t, string(ref), err, system.ErrBadRef)
	}
	// Refs rejected without a request.
	for _, ref := range []system.Ref{"not-a-cid", "", "../../etc/passwd", medium + "/x"} {
		fails(t, string(ref), n.Get(systemtest.Context(t), ref, io.Discard), system.ErrBadRef)
	}
}

func TestRanges(t *testing.T) {
	const off, size = 52428801, 65536
	middle := made("100MiB", off+size)[off:]
	tail := made("1KiB", 1024)[1000:]
	n := one(t, record(t, "05-cat-local", "offset-length", "length-past-end", "offset-at-end", "offset-past-end"),
		middle, tail)
	for _, c := range []struct {
		ref    system.Ref
		off, n int64
		want   []byte
		short  bool
	}{
		{large, off, size, middle, false},
		{small, 1000, 1000, tail, true},
		{large, 100 << 20, 10, nil, true},
		{large, 100<<20 + 1, 10, nil, true}, // 200 and an empty body
	} {
		var got bytes.Buffer
		err := n.GetRange(systemtest.Context(t), c.ref, c.off, c.n, &got)
		if !bytes.Equal(got.Bytes(), c.want) || errors.Is(err, io.ErrUnexpectedEOF) != c.short || !c.short &&
			err != nil {
			t.Errorf("%d bytes at %d: %d bytes, %v", c.n, c.off, got.Len(), err)
		}
	}
}

func TestCool(t *testing.T) {
	data := made("1MiB", 1<<20)
	for name, c := range map[string]struct {
		after replay.Exchange // the client's node's answer to an offline read
		want  error
	}{
		"cold": {asked(t, "09-cross-node", "n2-cat-100MiB-offline-after-gc", url.Values{"arg": {string(medium)},
			"offline": {"true"}}), nil},
		// Another pin has the same blocks: gc keeps them.
		"still warm": {record(t, "07-stats-pin-gc", "cat-1MiB-after-gc-offline")[0], system.ErrWarm},
	} {
		t.Run(name, func(t *testing.T) {
			n := two(t,
				replay.Chain(record(t, "04-add", "1MiB-v1-raw-256k-pin"), record(t, "07-stats-pin-gc", "pin-rm-1MiB",
					"gc-quiet-nothing-left"), []replay.Exchange{c.after}),
				// The server's node must have the whole object before the only copy is removed.
				[]replay.Exchange{asked(t, "09-cross-node", "n2-pin-add-100MiB-cold", arg(medium))},
				replay.Content(data))
			ref, err := n.Put(systemtest.Context(t), "1MiB.bin", 1<<20, bytes.NewReader(data))
			must(t, err)
			if err := n.Cool(systemtest.Context(t), ref); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			fails(t, "someone's object", n.Cool(systemtest.Context(t), large), system.ErrReadOnly)
		})
	}
}

func TestSeedAndDelete(t *testing.T) {
	data := made("1MiB", 1<<20)
	forget := record(t, "07-stats-pin-gc", "pin-rm-1MiB-again", "gc-quiet-nothing-left")
	n := two(t, forget, replay.Chain(record(t, "04-add", "1MiB-v1-raw-256k-pin"), record(t, "07-stats-pin-gc",
		"pin-rm-1MiB", "gc-quiet-nothing-left")), replay.Content(data))
	ref, err := n.Seed(systemtest.Context(t), "1MiB.bin", 1<<20, bytes.NewReader(data))
	if err != nil || ref != medium {
		t.Fatalf("%q, %v", ref, err)
	}
	fails(t, "delete of someone's object", n.Delete(systemtest.Context(t), large), system.ErrReadOnly)
	must(t, n.Delete(systemtest.Context(t), ref))
}

func TestListStatStats(t *testing.T) {
	n := one(t, replay.Chain(
		record(t, "07-stats-pin-gc", "pin-ls-stream"),
		[]replay.Exchange{asked(t, "07-stats-pin-gc", "files-stat", url.Values{"arg": {"/ipfs/" + string(large)},
			"timeout": {"30s"}})},
		record(t, "07-stats-pin-gc", "repo-stat-size-only"),
	))
	all, err := system.All(systemtest.Context(t), n)
	if err != nil || len(all) != 9 {
		t.Errorf("%d objects, %v", len(all), err)
	}
	for _, o := range all {
		if o.Ref == emptyDirectory || o.Size != -1 {
			t.Errorf("%+v", o)
		}
	}
	if o, err := n.Stat(systemtest.Context(t), large); err != nil || o.Size != 100<<20 { // the size without framing
		t.Errorf("%+v, %v", o, err)
	}
	if h, err := n.Stats(systemtest.Context(t)); err != nil || h.Absolute != 111663665 || h.Disk != -1 {
		t.Errorf("%+v, %v", h, err)
	}
}

// TestFailureIn200 checks swarm/disconnect, which reports failures with status 200.
func TestFailureIn200(t *testing.T) {
	n := one(t, record(t, "03-swarm", "connect-n1-n2", "disconnect", "disconnect-not-connected", "connect-wrong-port"))
	const address = "/ip4/127.0.0.1/tcp/14002/p2p/" + second
	ctx := systemtest.Context(t)
	must(t, n.Near().Connect(ctx, address))
	must(t, n.Near().swarm(ctx, "disconnect", address))
	if err := n.Near().swarm(ctx, "disconnect", address); err == nil || !strings.Contains(err.Error(),
		"conn not found") {
		t.Errorf("%v", err)
	}
	if err := n.Near().Connect(ctx,
		"/ip4/127.0.0.1/tcp/14009/p2p/12D3KooWD9zAMznEjy8jJmPnAQww6hpZtJURorXbCG7j3yGBcHzt"); err == nil {
		t.Error("connected to an address without a listener")
	}
}
