package all

import (
	"bytes"
	"context"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

var must = systemtest.Must

// counting is a host that counts the traffic on its link.
type counting struct {
	testbed.Host
	dials, sent, received atomic.Int64
}

func (c *counting) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.Host.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.dials.Add(1)
	return countingConn{conn, c}, nil
}

type countingConn struct {
	net.Conn
	host *counting
}

func (c countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.host.received.Add(int64(n))
	return n, err
}

func (c countingConn) Write(p []byte) (int, error) {
	c.host.sent.Add(int64(len(p))) // before Write, since the answer may arrive before it returns
	n, err := c.Conn.Write(p)
	c.host.sent.Add(int64(n - len(p)))
	return n, err
}

// TestConnections checks that systems whose client is in this process keep one connection for
// consecutive operations, reconnect once per Redial, and transfer objects over the client's link
// except for seeds.
func TestConnections(t *testing.T) {
	for _, s := range All() {
		i := s.Info()
		if !slices.Contains([]string{"nginx", "static", "s3", "sftp"}, i.Name) {
			continue
		}
		for _, tls := range []string{"", "false", "true"} {
			opt := system.Options{}
			if tls != "" {
				opt["tls"] = tls
			}
			if _, err := i.Fill(opt); err != nil || tls == "" && hasOption(i, "tls") {
				continue
			}
			t.Run(i.Name+" tls="+tls, func(t *testing.T) {
				systemtest.Need(t, s, opt)
				hosts := systemtest.Hosts(t, 2)
				client := &counting{Host: hosts[1]}
				d := system.Deployment{Hosts: hosts[:1], Client: client, Dir: t.TempDir(), Options: opt}
				c, err := system.Begin(systemtest.Context(t), s, system.Start, d)
				must(t, err)
				defer c.Stop(t.Context())
				testConnections(t, c.Nodes()[0].(system.Store), client)
			})
		}
	}
}

func testConnections(t *testing.T, n system.Store, link *counting) {
	const size = 500_000
	ctx := systemtest.Context(t)
	object := func(seed string) *bytes.Reader { return bytes.NewReader(systemtest.Bytes(seed, size)) }
	var ref system.Ref
	var err error
	for _, op := range []struct {
		name           string
		sent, received int64 // at least
		do             func() error
	}{
		{"put", size, 0, func() error {
			ref, err = system.PutMutable(ctx, n, "object", size, object("a"))
			return err
		}},
		{"update", size, 0, func() error { return n.(system.Updater).Update(ctx, ref, size, object("b")) }},
		{"get", 0, size, func() error { return n.Get(ctx, ref, io.Discard) }},
		{"range", 0, 1000, func() error { return n.(system.Ranger).GetRange(ctx, ref, 10, 1000, io.Discard) }},
		{"stat", 0, 0, func() error { _, err := n.(system.Stater).Stat(ctx, ref); return err }},
		{"delete", 0, 0, func() error { return n.(system.Deleter).Delete(ctx, ref) }},
	} {
		for _, fresh := range []bool{false, true} {
			if op.name == "delete" { // the deleted object is put again
				ref, err = n.Put(ctx, "object", size, object("c"))
				must(t, err)
			}
			var dials int64
			if fresh {
				dials = 1
				must(t, n.(system.Redialer).Redial(ctx))
			} else if err := n.Get(ctx, "no-such-object", io.Discard); err == nil { // opens a connection that is kept
				t.Fatal("got what is not there")
			}
			d, s, r := link.dials.Load(), link.sent.Load(), link.received.Load()
			if err := op.do(); err != nil {
				t.Fatalf("%s: %v", op.name, err)
			}
			d, s, r = link.dials.Load()-d, link.sent.Load()-s, link.received.Load()-r
			if d != dials {
				t.Errorf("%s, fresh %v: %d dials", op.name, fresh, d)
			}
			if s < op.sent || r < op.received || s > op.sent+20_000 || r > op.received+60_000 {
				t.Errorf("%s, fresh %v: %d bytes sent, %d received", op.name, fresh, s, r)
			}
		}
	}
	s := link.sent.Load()
	_, err = system.Seed(ctx, n, "seeded", size, object("d"))
	must(t, err)
	if s = link.sent.Load() - s; s > 0 {
		t.Errorf("a seed sent %d bytes over the client's link", s)
	}
	h, err := n.(system.Stats).Stats(ctx)
	if err != nil || h.Objects != 1 || h.Absolute < size || h.Absolute > size+10_000 || h.Disk < size ||
		h.Entries < 1 || h.Inodes < 2 {
		t.Errorf("stats of one object of %d bytes: %+v, %v", size, h, err)
	}
}

func hasOption(i system.Info, name string) bool {
	return slices.ContainsFunc(i.Options, func(o system.Option) bool { return o.Name == name })
}
