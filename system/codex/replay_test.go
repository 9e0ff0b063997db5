package codex

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/replay"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

var must = systemtest.Must

const (
	small   system.Ref = "zDvZRwzkwaHLmfXXmNA9QtzDK2qgok5MeAgcMcB99Wh8NFt8SWkG" // 1KiB.bin
	medium  system.Ref = "zDvZRwzmDmooRVBwx5k5BpTs3zfjuyK4CgJeRdjP9MxhxkqbvNoT" // 1MiB.bin
	unknown system.Ref = "zDvZRwzkwTFrvX3LYu4f26ThEV2ETHBjG1yHYAoM7EgM27iDVT7P"

	smallSum  = "3dbc3b132331f5ef4a5d156d223408e4ca97c5820977118da66919e6d2fd0947"
	mediumSum = "2417548071234ade96324322c905250f75b29f9dae40d8a24bb0f2c29a44fbee"
)

// brief is how long tests wait for an event that must not occur: longer than a busy machine takes
// for one that occurs.
const brief = 3 * time.Second

// fails checks that err is of a kind, and not system.ErrNotFound unless that is the kind.
func fails(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) || kind != system.ErrNotFound && errors.Is(err, system.ErrNotFound) {
		t.Errorf("%s: error %v, want %v", what, err, kind)
	}
}

func record(t *testing.T, file string, steps ...string) []replay.Exchange {
	t.Helper()
	return replay.Steps(replay.Load(t, "testdata/"+file+".jsonl"), steps...)
}

// only returns the exchanges whose path ends with end.
func only(rec []replay.Exchange, method, end string) []replay.Exchange {
	var out []replay.Exchange
	for _, e := range rec {
		if e.Method == method && strings.HasSuffix(e.Path, end) {
			out = append(out, e)
		}
	}
	return out
}

// hello is the first exchange with an attached node.
func hello(t *testing.T) []replay.Exchange {
	return record(t, "02-info", "other dialect base path on this version", "debug info", "debug info")
}

// joins is the connection of the client's node to the server's, after a request for its address.
func joins(t *testing.T) []replay.Exchange {
	return record(t, "08-connect-no-bootstrap", "connect with the address")
}

// attach attaches to recorded nodes: the client's and, unless nil, the server's.
func attach(t *testing.T, near, far *replay.Server, write bool) system.Store {
	t.Helper()
	opt := system.Options{"url": near.URL, "not_found_after": "30s"}
	if far != nil {
		opt["server_url"] = far.URL
	}
	c, err := systemtest.Attach(t, System{}, opt, write)
	must(t, err)
	return c.Nodes()[0].(system.Store)
}

// one attaches to a single node with these exchanges after the greeting.
func one(t *testing.T, exchanges []replay.Exchange, opt ...replay.Option) *node {
	t.Helper()
	return attach(t, replay.Serve(t, replay.Chain(hello(t), exchanges), opt...), nil, true).(*node)
}

func TestDialects(t *testing.T) {
	if n := one(t, nil); n.Near().dialect != codex {
		t.Errorf("%s", n.Near().dialect)
	}
	// Logos Storage gives the same answers under another path.
	later := replay.Serve(t, record(t, "02-info", "debug info", "debug info"), replay.Let("/api/codex/v1",
		"/api/storage/v1"))
	if n := attach(t, later, nil, false).(*node); n.Near().dialect != logos {
		t.Errorf("%s", n.Near().dialect)
	}
	// Another server has neither path.
	neither := record(t, "02-info", "other dialect base path on this version", "debug info")
	neither[1].Answer.Status = 404
	_, err := systemtest.Attach(t, System{}, system.Options{"url": replay.Serve(t, neither).URL}, false)
	if err == nil || !strings.Contains(err.Error(), "neither Codex nor Logos Storage") {
		t.Errorf("%v", err)
	}
}

func TestPutAndGet(t *testing.T) {
	data := systemtest.Bytes("1KiB", 1024)
	get := record(t, "05-download-local", "local download 1KiB")
	get[0].Path += "/network/stream"
	n := one(t, replay.Chain(record(t, "03-upload", "upload 1KiB with filename"), get), replay.Instead(smallSum, data))
	ref, err := n.Put(systemtest.Context(t), "1KiB.bin", 1024, bytes.NewReader(data))
	if err != nil || ref != small {
		t.Fatalf("%q, %v", ref, err)
	}
	var got bytes.Buffer
	if err := n.Get(systemtest.Context(t), ref, &got); err != nil || !bytes.Equal(got.Bytes(), data) {
		t.Errorf("%d bytes, %v", got.Len(), err)
	}
}

func TestReadOnlyWhenNotAllowed(t *testing.T) {
	n := attach(t, replay.Serve(t, hello(t)), nil, false)
	_, err := n.Put(t.Context(), "x", 1, strings.NewReader("x"))
	fails(t, "put", err, system.ErrReadOnly)
	fails(t, "delete of someone's object", n.(system.Deleter).Delete(t.Context(), small), system.ErrReadOnly)
}

func TestEmptyObjectIsRefused(t *testing.T) {
	n := one(t, replay.Chain(record(t, "03-upload", "upload of 0 bytes"),
		record(t, "02-info", "space of an empty node")))
	_, err := n.Put(systemtest.Context(t), "empty.bin", 0, strings.NewReader(""))
	if err == nil || errors.Is(err, system.ErrQuota) || !strings.Contains(err.Error(), "do not have body") {
		t.Errorf("%v", err)
	}
}

// TestQuota checks an answer that arrives during the upload, and is often lost with the connection.
func TestQuota(t *testing.T) {
	for _, c := range []struct {
		step, name string
		size       int64
	}{{"upload of 20 MiB", "q.bin", 20 << 20}, {"upload of 1 KiB after the failure", "small.bin", 1024}} {
		n := one(t, record(t, "11-quota", c.step, "space after the failed upload"),
			replay.Instead(smallSum, systemtest.Bytes("quota", 1024)))
		_, err := n.Put(systemtest.Context(t), c.name, c.size, systemtest.Content("quota", c.size))
		fails(t, c.step, err, system.ErrQuota)
	}
}

// TestReadsThatFail checks how Get handles answers without an object.
func TestReadsThatFail(t *testing.T) {
	part := systemtest.Bytes("part", 300_000)
	short := record(t, "05-download-local", "local download 1MiB")
	short[0].Path += "/network/stream"
	short[0].Answer.Body, short[0].Answer.End = replay.Body{Bytes: int64(len(part)), SHA256: replay.Sum(part)},
		replay.Cut
	nowhere := record(t, "10-cid-errors", "unknown CID, client deadline 15 s")
	for name, c := range map[string]struct {
		answers []replay.Exchange
		ref     system.Ref
		after   time.Duration // option not_found_after
		closed  bool          // there are no other nodes
		want    error
		says    string
	}{
		"a short body": {short, medium, time.Minute, false, io.ErrUnexpectedEOF, ""},
		"unknown, no answer in the time given": {only(nowhere, "GET", "/network/stream"), unknown, brief, false,
			system.ErrNotFound, "no answer for 3s"},
		"unknown, no node has it": {nil, unknown, time.Minute, true, system.ErrNotFound, "none of the nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := one(t, c.answers, replay.Content(part))
			n.Closed, n.NotFoundAfter = c.closed, c.after
			err := n.Get(systemtest.Context(t), c.ref, io.Discard)
			fails(t, "get", err, c.want)
			if !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

func TestMalformedCID(t *testing.T) {
	rec := record(t, "10-cid-errors", "malformed CID")
	n := one(t, only(rec, "GET", "/xyz/network/stream"))
	// The node's answer to a CID that passes our check.
	_, err := n.Near().text(systemtest.Context(t), "/data/xyz/network/stream", nil, web.Call{Method: "GET"})
	fails(t, "xyz", err, system.ErrBadRef)
	// Refs rejected without a request.
	for _, ref := range []system.Ref{"xyz", "", "../../etc/passwd", small + "/exists"} {
		fails(t, string(ref), n.Get(systemtest.Context(t), ref, io.Discard), system.ErrBadRef)
	}
}

func TestCool(t *testing.T) {
	data := systemtest.Bytes("cool", 1<<20)
	const other = "zDvZRwzmBGgvtZJHARfeVAPfES1Dgz8VuS9Nixykff7w5S41cY9R"
	put := record(t, "03-upload", "upload 1MiB with filename")
	for name, c := range map[string]struct {
		after []replay.Exchange // the client's node's answer to a read without network
		want  error
	}{
		"cold":       {record(t, "09-delete", "local GET after"), nil},
		"still warm": {record(t, "05-download-local", "local download 1MiB"), system.ErrWarm},
	} {
		t.Run(name, func(t *testing.T) {
			opt := []replay.Option{replay.Instead(mediumSum, data), replay.Let(other, string(medium))}
			near := replay.Serve(t, replay.Chain(hello(t), joins(t), put, record(t, "09-delete", "delete 20 MiB"),
				c.after), opt...)
			// The server's node must have the whole object before the only copy is removed.
			far := replay.Serve(t, replay.Chain(hello(t), record(t, "05-download-local",
				"network/stream on the node that has the data")), opt...)
			n := attach(t, near, far, true)
			ref, err := n.Put(systemtest.Context(t), "1MiB.bin", 1<<20, bytes.NewReader(data))
			must(t, err)
			if err := n.(system.Cooler).Cool(systemtest.Context(t), ref); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

func TestSeedGoesToTheServersNode(t *testing.T) {
	data := systemtest.Bytes("seed", 1<<20)
	near := replay.Serve(t, replay.Chain(hello(t), joins(t)))
	far := replay.Serve(t, replay.Chain(hello(t), record(t, "03-upload", "upload 1MiB with filename")),
		replay.Instead(mediumSum, data))
	ref, err := system.Seed(systemtest.Context(t), attach(t, near, far, true), "1MiB.bin", 1<<20, bytes.NewReader(data))
	if err != nil || ref != medium {
		t.Errorf("%q, %v", ref, err)
	}
}

func TestListStatSpace(t *testing.T) {
	n := one(t, replay.Chain(
		record(t, "04-list-manifest", "list after only the manifest", "manifest of local data"),
		record(t, "02-info", "data list of an empty node"),
		record(t, "03-upload", "space: the second copy adds only manifests"),
	))
	all, err := system.All(systemtest.Context(t), n)
	if err != nil || len(all) == 0 {
		t.Fatalf("%v, %v", all, err)
	}
	if o := all[0]; o.Size != 1<<20 || o.Ref != medium || o.Name != "1MiB.bin" {
		t.Errorf("%+v", o)
	}
	o, err := n.Stat(systemtest.Context(t), "zDvZRwzm6jttobPuCXTSJSw3iRGcBWDVpJouUKXCRAyXmAkCmiMP")
	if err != nil || o.Size != 20<<20 || o.Name != "20MiB.bin" {
		t.Errorf("%+v, %v", o, err)
	}
	if all, err := system.All(systemtest.Context(t), n); err != nil || len(all) != 0 {
		t.Errorf("empty: %v, %v", all, err)
	}
	h, err := n.Stats(systemtest.Context(t))
	if err != nil || h.Absolute != 22151875 || h.Disk != -1 || h.Objects != -1 {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestConnect(t *testing.T) {
	const peer = "16Uiu2HAm9ERS7MTg7jAcZFVB4AYgUwXgxvjdtRcnoHSFQQvqTcdN"
	n := one(t, replay.Chain(
		record(t, "02-info", "debug info"),
		record(t, "08-connect-no-bootstrap", "connect with the address", "connect: unknown peer, dead address",
			"connect: malformed peer id"),
	))
	address, err := n.Near().Address(systemtest.Context(t))
	if want := "/ip4/127.0.0.1/tcp/7001/p2p/" + peer; err != nil || address != want {
		t.Fatalf("%q, %v", address, err)
	}
	must(t, n.Near().Connect(systemtest.Context(t), address))
	for _, address := range []string{"/ip4/127.0.0.1/tcp/9/p2p/16Uiu2HAmBuSseqLnZWM2yBd5xqQFhG1Wy23rir37aMDJtva55Wrr",
		"/ip4/127.0.0.1/tcp/7001/p2p/xyz"} {
		if err := n.Near().Connect(systemtest.Context(t), address); err == nil || errors.Is(err, system.ErrBadRef) {
			t.Errorf("%q: %v", address, err)
		}
	}
}
