package renterd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/replay"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

var must = systemtest.Must

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

// TestConformance runs the suite on a private network of the renterd and hostd named by
// PLIMSOLL_RENTERD and PLIMSOLL_HOSTD.
func TestConformance(t *testing.T) {
	// Slow, because an object of one byte is a slab of 12 MiB. Of a hundred stalled downloads, the
	// last ones get no memory in the node.
	systemtest.Run(t, systemtest.Suite{System: System{},
		Options: system.Options{"host_size": "8589934592"}, Truths: systemtest.Truths{Slow: true}})
}

const secret = "not a real password"

// on returns a node on a replay, without attaching to it.
func on(t *testing.T, steps []replay.Exchange, opts ...replay.Option) *node {
	t.Helper()
	s := replay.Serve(t, steps, append(opts, replay.Login("", secret))...)
	base, err := url.Parse(s.URL)
	must(t, err)
	a := connect(base, secret, systemtest.Hosts(t, 1)[0])
	t.Cleanup(a.Client.Close)
	n := newNode(a, system.Options{"bucket": "load"})
	n.total, n.Write, n.page = 3, true, 2
	return n
}

// fails checks that err is of a kind (any if nil) and contains all these words.
func fails(t *testing.T, what string, err, kind error, words ...string) {
	t.Helper()
	lacks := func(word string) bool { return !strings.Contains(err.Error(), word) }
	if err == nil || kind != nil && !errors.Is(err, kind) || slices.ContainsFunc(words, lacks) {
		t.Errorf("%s: error %v, want %v with %q", what, err, kind, words)
	}
}

// attach attaches to a replay with all its checks.
func attach(t *testing.T, steps []replay.Exchange, write bool, more system.Options) (system.Cluster, error) {
	t.Helper()
	s := replay.Serve(t, steps, replay.Login("", secret))
	t.Setenv("PLIMSOLL_TEST_RENTERD", secret)
	opt := system.Options{"url": s.URL, "password": "PLIMSOLL_TEST_RENTERD", "bucket": "load", "prefix": ""}
	maps.Copy(opt, more)
	return systemtest.Attach(t, System{}, opt, write)
}

// at returns the first exchange of a step with a path.
func at(t *testing.T, rec []replay.Exchange, step, path string) []replay.Exchange {
	t.Helper()
	for _, e := range replay.Steps(rec, step) {
		if e.Path == path {
			return []replay.Exchange{e}
		}
	}
	t.Fatalf("the recording has no step %q of %s", step, path)
	return nil
}

// hello returns the exchanges at the beginning of each attach.
func hello(t *testing.T, rec []replay.Exchange) []replay.Exchange {
	return replay.Chain(
		at(t, rec, "state", "/api/bus/state"), at(t, rec, "state", "/api/bus/consensus/state"),
		replay.Steps(rec, "buckets"), replay.Steps(rec, "get settings/upload"), // packing is on
	)
}

func TestWrongPassword(t *testing.T) {
	_, err := attach(t, replay.Steps(replay.Load(t, "testdata/errors.jsonl"), "wrong password"), false, nil)
	fails(t, "attach", err, system.ErrAuth)
	if strings.Contains(fmt.Sprint(err), secret) {
		t.Error(err)
	}
}

// TestNoSuchBucket checks buckets that do not exist: listing one gives no objects, and the list of
// buckets is null if there are none.
func TestNoSuchBucket(t *testing.T) {
	rec := replay.Load(t, "testdata/attach.jsonl")
	if e := replay.Steps(replay.Load(t, "testdata/listing.jsonl"),
		"bucket that does not exist")[0]; e.Answer.Status != 200 {
		t.Fatal("listing it was refused in the recording: the trap is gone")
	}
	steps := replay.Chain(at(t, rec, "state", "/api/bus/state"), at(t, rec, "state", "/api/bus/consensus/state"))
	for bucket, answer := range map[string][]replay.Exchange{
		"load": at(t, rec, "state", "/api/bus/buckets"), // null
		"nope": replay.Steps(rec, "buckets"),
	} {
		_, err := attach(t, replay.Chain(steps, answer), false, system.Options{"bucket": bucket})
		if err == nil || !strings.Contains(err.Error(), "no bucket \""+bucket) || errors.Is(err, system.ErrNotFound) {
			t.Errorf("%s: %v", bucket, err)
		}
	}
	upload := replay.Steps(replay.Load(t, "testdata/errors.jsonl"), "upload into a bucket that does not exist")
	upload[0].Header.Set("Content-Type", "application/octet-stream")
	n := on(t, upload, replay.Instead(upload[0].Body.SHA256, []byte("x")))
	n.bucket = "nope"
	_, err := n.Put(t.Context(), "x", 1, strings.NewReader("x"))
	fails(t, "put", err, nil, "option `bucket`")
	if errors.Is(err, system.ErrNotFound) {
		t.Error(err)
	}
}

// TestPacking checks that the user's settings are not changed: the strict replay fails on a PUT.
func TestPacking(t *testing.T) {
	rec := replay.Load(t, "testdata/attach.jsonl")
	for _, write := range []bool{true, false} {
		for packing, ok := range map[string]bool{"keep": true, "on": true, "off": false} {
			cluster, err := attach(t, hello(t, rec), write, system.Options{"packing": packing})
			if !ok {
				fails(t, packing, err, nil, "PUT /api/bus/settings/upload")
				continue
			}
			must(t, err)
			if got := cluster.Identity()["packing"]; got != "on" {
				t.Errorf("packing is reported as %q", got)
			}
			must(t, cluster.Stop(t.Context()))
		}
	}
}

// TestTooFewHostsWhileSending checks an answer, with the reason, that arrives while the body is
// being sent and the node stops reading it.
func TestTooFewHostsWhileSending(t *testing.T) {
	n, err := putWide(t, wide(t))
	fails(t, "put", err, system.ErrTooFew, "3 < 10")
	if _, ours := n.Stored("wide"); ours {
		t.Error("what was refused counts as ours")
	}
}

// wide returns an upload for which there are too few hosts.
func wide(t *testing.T) []replay.Exchange {
	rec := replay.Load(t, "testdata/errors.jsonl")
	return replay.Steps(rec, "upload with an impossible redundancy (2 of 10, 3 hosts)")
}

func putWide(t *testing.T, upload []replay.Exchange) (*node, error) {
	t.Helper()
	const size = 20 << 20
	n := on(t, upload, replay.Let("/off/wide", "/wide"))
	n.asked = url.Values{"minshards": {"2"}, "totalshards": {"10"}}
	_, err := n.Put(t.Context(), "wide", size, systemtest.Content("wide", size))
	return n, err
}

// TestSlabBufferLooksUploaded checks objects in a slab buffer: with packing, a put returns, and the
// object can be listed and read, although no host has any of it.
func TestSlabBufferLooksUploaded(t *testing.T) {
	rec := replay.Load(t, "testdata/objects.jsonl")
	put := replay.Steps(rec, "upload b1, packing on")
	inBuffer := at(t, rec, "object metadata with slabs", "/api/bus/object/on/b1")
	inBuffer[0].Repeat = true
	n := on(t, replay.Chain(put, inBuffer),
		replay.Let("/on/b1", "/b1"), replay.Instead(put[0].Body.SHA256, []byte("x")))
	ref, err := n.Put(t.Context(), "b1", 1, strings.NewReader("x"))
	must(t, err)
	fails(t, "cool", n.Cool(t.Context(), ref), system.ErrWarm, "slab buffer")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	fails(t, "settle", n.Settle(ctx, ref), context.DeadlineExceeded, "0 of 1 bytes are on hosts")
}

func TestSettleWaitsForShards(t *testing.T) {
	rec := replay.Load(t, "testdata/objects.jsonl")
	states := replay.Chain(at(t, rec, "object metadata with slabs", "/api/bus/object/on/b1"),
		replay.Steps(rec, "object on/b1 after the slab went to hosts"))
	n := on(t, replay.Poll(states))
	must(t, n.Settle(systemtest.Context(t), "on/b1"))
	must(t, n.Cool(t.Context(), "on/b1"))
	// The end of a larger object is in the buffer, and the rest is on hosts.
	n = on(t, at(t, rec, "object metadata with slabs", "/api/bus/object/on/mib20"))
	fails(t, "cool", n.Cool(t.Context(), "on/mib20"), system.ErrWarm, "4194304 of 20971520")
	// An empty object has no slabs and nothing to wait for.
	n = on(t, replay.Steps(replay.Load(t, "testdata/errors.jsonl"), "metadata of the empty object"))
	must(t, n.Settle(t.Context(), "off/empty"))
	// With fewer shards than requested, it is not settled.
	full := replay.Steps(rec, "object on/b1 after the slab went to hosts")
	full[0].Repeat, full[0].Optional = true, true
	n = on(t, full)
	n.total = 4
	if o, err := n.object(t.Context(), "on/b1"); err != nil || o.onHosts(3) != 1 || o.onHosts(4) != 0 {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestNamesAreNotReplaced checks that no key is used twice, neither by two runs nor within one,
// because renterd overwrites silently.
func TestNamesAreNotReplaced(t *testing.T) {
	if e := replay.Steps(replay.Load(t, "testdata/errors.jsonl"),
		"upload to an existing key with other content")[0]; e.Answer.Status != 200 {
		t.Fatal("it was refused in the recording: the trap is gone")
	}
	rec := replay.Load(t, "testdata/attach.jsonl")
	seen := map[system.Ref]bool{}
	for range 2 {
		c, err := attach(t, hello(t, rec), true, system.Options{"prefix": "plimsoll/"})
		must(t, err)
		n := c.Nodes()[0].(*node)
		ref := n.Named("theirs")
		if seen[ref] || !strings.HasPrefix(string(ref), "plimsoll/") || ref == "plimsoll/theirs" ||
			n.Name(ref) != "theirs" {
			t.Errorf("key %q is one that somebody else may have", ref)
		}
		seen[ref] = true
	}
	n := on(t, nil) // nothing is sent
	n.Add("ours", 1)
	_, err := n.Put(t.Context(), "ours", 1, strings.NewReader("x"))
	fails(t, "put", err, nil, "would replace")
	fails(t, "delete", n.Delete(t.Context(), "theirs"), system.ErrReadOnly)
	n.Write = false
	_, err = n.Put(t.Context(), "new", 1, strings.NewReader("x"))
	fails(t, "put", err, system.ErrReadOnly)
}

// TestFullHosts checks the answer when hosts are full: a host without room reports it in its line
// of the answer. The answer is that of a renterd v2.9.3 with three full hostd v2.10.2, except for
// the IDs.
func TestFullHosts(t *testing.T) {
	said := "couldn't upload object: couldn't upload object: failed to upload slab: launched=3 uploaded=0 " +
		"remaining=3 inflight=0 pending=3 uploaders=3 errors=3 \n"
	for _, h := range []string{"fae80eb3", "913a34ad", "072dc442"} {
		said += h + ": failed to upload sector to contract " + strings.Repeat(h, 8) + "; failed to upload sector: " +
			"host responded with error: failed to write sector: failed to read response: not enough storage (2)\n"
	}
	full := wide(t)
	full[0].Answer.Body.Text = said
	_, err := putWide(t, full)
	fails(t, "put", err, system.ErrQuota)
	full[0].Answer.Body.Text = strings.ReplaceAll(said, "not enough storage (2)", "context deadline exceeded")
	if _, err := putWide(t, full); err == nil || errors.Is(err, system.ErrQuota) {
		t.Errorf("slow hosts are not full: %v", err)
	}
}

func TestMissing(t *testing.T) {
	rec := replay.Load(t, "testdata/errors.jsonl")
	n := on(t, replay.Steps(rec, "missing object: worker", "missing object: bus", "missing object: bus"))
	fails(t, "get", n.Get(t.Context(), "missing", io.Discard), system.ErrNotFound)
	fails(t, "range", n.GetRange(t.Context(), "missing", 0, 1, io.Discard), system.ErrNotFound)
	fails(t, "settle", n.Settle(t.Context(), "missing"), system.ErrNotFound)
	for _, ref := range []system.Ref{"", "/leading", "../x", "a//b"} {
		if err := n.Get(t.Context(), ref, io.Discard); !errors.Is(err, system.ErrBadRef) ||
			errors.Is(err, system.ErrNotFound) {
			t.Errorf("get %q: %v", ref, err)
		}
	}
}

// TestListFollowsMarkers checks that keys and markers have a leading slash (a marker without it
// ends the list early), and that an empty list is null.
func TestListFollowsMarkers(t *testing.T) {
	rec := replay.Load(t, "testdata/listing.jsonl")
	last := replay.Steps(rec, "page 4: limit 2 and marker")[0]
	end := last.JSON(200, map[string]any{"hasMore": false, "nextMarker": "", "objects": nil})
	end.Query = url.Values{"bucket": {"load"}, "limit": {"2"}, "marker": {"/on/fill6"}}
	pages := replay.Steps(rec, "page 1: limit 2 and marker", "page 2: limit 2 and marker", "page 3: limit 2 and marker",
		"page 4: limit 2 and marker")
	n := on(t, append(pages, end))
	n.Prefix = "on/"
	all, err := system.All(t.Context(), n)
	if err != nil || len(all) != 8 {
		t.Fatalf("%d objects, %v", len(all), err)
	}
	if o := all[1]; o.Ref != "on/fill0" || o.Name != "fill0" || o.Size != 1<<20 {
		t.Errorf("%+v", o)
	}
}

// TestStats checks that the bucket's totals are only reported while it has no objects of others.
func TestStats(t *testing.T) {
	rec := replay.Load(t, "testdata/objects.jsonl")
	states := replay.Steps(rec, "stats/objects after") // one byte, three sectors of 4 MiB; then one object more
	n := on(t, states[:2])
	n.Add("b1", 1)
	if h, err := n.Stats(t.Context()); err != nil || h.Objects != 1 || h.Absolute != 3*4<<20 || h.Disk != -1 {
		t.Errorf("%+v, %v", h, err)
	}
	if h, err := n.Stats(t.Context()); err != nil || h.Objects != 1 || h.Absolute != -1 {
		t.Errorf("with somebody else's object: %+v, %v", h, err)
	}
	reader := on(t, states[1:2])
	reader.Write = false
	if h, err := reader.Stats(t.Context()); err != nil || h.Objects != 2 || h.Absolute != 6*4<<20 {
		t.Errorf("reading: %+v, %v", h, err)
	}
}

func TestOptions(t *testing.T) {
	t.Setenv("PLIMSOLL_TEST_RENTERD", secret)
	for want, opt := range map[string]system.Options{
		"not the URL":    {"url": "127.0.0.1:9980"},
		"is not the URL": {"url": "http://127.0.0.1:9980/api"},
		"variable PLIMSOLL_TEST_UNSET is not set": {"url": "http://127.0.0.1:9980", "password": "PLIMSOLL_TEST_UNSET"},
		"min ≤ total": {"url": "http://127.0.0.1:9980", "password": "PLIMSOLL_TEST_RENTERD",
			"min_shards": "3", "total_shards": "2"},
		"no server answers at":   {"url": "http://127.0.0.1:1", "password": "PLIMSOLL_TEST_RENTERD"},
		"is one of keep, on, of": {"url": "http://127.0.0.1:9980", "packing": "maybe"},
	} {
		p := system.Check(t.Context(), System{}, opt)
		if len(p) != 1 || !strings.Contains(p[0].What, want) {
			t.Errorf("%v: %v, want %q", opt, p, want)
		}
	}
}
