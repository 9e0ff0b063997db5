package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// An agent whose kernel has no netem says so, and what to do, before anything is made.
func TestNoNetem(t *testing.T) {
	if link.Works(link.NetemDiscipline) == nil {
		t.Skip("this kernel has netem")
	}
	var input bytes.Buffer
	_, theirs, err := NewCredentials()
	must(t, err)
	must(t, gob.NewEncoder(&input).Encode(theirs))
	err = Serve(t.Context(), []string{"--dir", t.TempDir(), "--index", "0", "--emulator", "netem"}, &input)
	wantError(t, err, "netem", "(")
}

// box is a machine of a test: a network namespace, that of this process for the first, with an agent on the others.
type box struct {
	t           *testing.T
	number      int
	ns          netns.NsHandle
	far         link.Port // of its cable, at the switch
	ours, their Credentials
	agent       *exec.Cmd
	at          string // of the agent
}

func (b *box) name() string { return "box" + strconv.Itoa(b.number) }

func (b *box) addr() netip.Addr { return netip.AddrFrom4([4]byte{10, 9, 0, byte(b.number)}) }

// boxes are machines whose cables end in one switch.
func boxes(t *testing.T, n int) (all []*box) {
	t.Helper()
	wire := space(t)
	nl := open(t, wire)
	must(t, nl.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "switch"}}))
	bridge := up(t, nl, "switch")
	ours, theirs, err := NewCredentials()
	must(t, err)
	for i := range n {
		b := &box{t: t, number: i + 1, ours: ours, their: theirs}
		if b.ns, err = netns.Get(); i > 0 {
			b.ns = space(t)
		}
		must(t, err)
		b.far = link.Port{NL: nl, Device: b.name()}
		must(t, nl.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: b.name()}, PeerName: "eth0",
			PeerNamespace: netlink.NsFd(int(b.ns))}))
		must(t, nl.LinkSetMaster(up(t, nl, b.name()), bridge))
		inside := open(t, b.ns)
		up(t, inside, "lo")
		must(t, inside.AddrAdd(up(t, inside, "eth0"),
			&netlink.Addr{IPNet: &net.IPNet{IP: b.addr().AsSlice(), Mask: net.CIDRMask(24, 32)}}))
		all = append(all, b)
	}
	t.Cleanup(func() {
		for _, b := range all {
			b.kill()
		}
	})
	return all
}

func space(t *testing.T) (ns netns.NsHandle) {
	t.Helper()
	must(t, link.OnThread(func() (err error) {
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			ns, err = netns.Get()
		}
		return err
	}))
	t.Cleanup(func() { ns.Close() })
	return ns
}

func open(t *testing.T, ns netns.NsHandle) *netlink.Handle {
	t.Helper()
	nl, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	must(t, err)
	t.Cleanup(nl.Close)
	return nl
}

// up sets a device up.
func up(t *testing.T, nl *netlink.Handle, name string) netlink.Link {
	t.Helper()
	dev, err := nl.LinkByName(name)
	must(t, err)
	must(t, nl.LinkSetUp(dev))
	return dev
}

// start starts an agent as a place does.
func (b *box) start() {
	b.t.Helper()
	var input bytes.Buffer
	must(b.t, gob.NewEncoder(&input).Encode(b.their))
	b.agent = exec.Command(os.Args[0], "node", "agent", "--listen", "tcp:"+b.addr().String()+":0", "--name", b.name(),
		"--address", b.addr().String(), "--dir", b.t.TempDir(), "--index", strconv.Itoa(b.number-1), "--emulator", "netem")
	b.agent.Stdin, b.agent.Stderr = &input, os.Stderr
	out, err := b.agent.StdoutPipe()
	must(b.t, err)
	must(b.t, link.InNamespace(int(b.ns), b.agent.Start))
	b.at, err = bufio.NewReader(out).ReadString('\n')
	must(b.t, err)
	b.at = strings.TrimSpace(b.at)
}

func (b *box) kill() {
	if b.agent != nil {
		_ = b.agent.Process.Kill()
		_ = b.agent.Wait()
		b.agent = nil
	}
}

// engineOf is the testbed of the engine on the first machine, with a host there and on each other.
func engineOf(t *testing.T, all []*box) (*testbed.Testbed, []testbed.Host) {
	t.Helper()
	tb := bed(t, testbed.Options{Mesh: true, Emulate: link.NetemDiscipline,
		Hosts: func(ctx context.Context, tb *testbed.Testbed, name string) (testbed.Host, error) {
			b := all[name[0]-'a']
			if b.number == 1 {
				return tb.MeshHost(name, 1, b.addr())
			}
			h, err := Reach(ctx, Options{Name: name, On: b.name(), Addr: testbed.MeshAddr(b.number), Credentials: b.ours,
				Bed: tb, Dial: func(ctx context.Context) (net.Conn, error) {
					return (&net.Dialer{}).DialContext(ctx, "tcp", b.at)
				}})
			if err == nil {
				t.Cleanup(func() { h.Close() })
			}
			return h, err
		}})
	var hosts []testbed.Host
	for i := range all {
		hosts = append(hosts, addHost(t, tb, string(rune('a'+i))))
	}
	return tb, hosts
}

// netem emulates links between machines: rates, delays less the way between the machines, jitter, losses, and
// single pairs; nothing but hosts' packets is shaped, and nothing is left when an agent is killed.
func TestNetemBetweenMachines(t *testing.T) {
	if err := link.Works(link.NetemDiscipline); err != nil || os.Geteuid() != 0 {
		if slices.Contains(strings.Split(os.Getenv("PLIMSOLL_REQUIRE"), ","), "netem") {
			t.Fatal(err)
		}
		t.Skip("needs root and a kernel with netem: ", err)
	}
	const inside = "AGENT_TEST_NETEM"
	if os.Getenv(inside) == "" { // once more, in a network of its own, which is the first machine's
		cmd := exec.Command(os.Args[0], "-test.run=^TestNetemBetweenMachines$", "-test.v")
		cmd.Env, cmd.SysProcAttr = append(os.Environ(), inside+"=1"), &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		must(t, cmd.Run())
		return
	}
	all := boxes(t, 3)
	way := func(d time.Duration) {
		for _, b := range all {
			dev, err := b.far.NL.LinkByName(b.far.Device)
			must(t, err)
			must(t, b.far.NL.QdiscReplace(netlink.NewNetem(netlink.QdiscAttrs{LinkIndex: dev.Attrs().Index,
				Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
				netlink.NetemQdiscAttrs{Latency: uint32(d.Microseconds()), Limit: 10000})))
		}
	}
	const ms = time.Millisecond
	way(5 * ms) // one way
	for _, b := range all[1:] {
		b.start()
	}
	tb, hosts := engineOf(t, all)
	for _, c := range []struct {
		name string
		p    link.Params
		down float64
		pair time.Duration // delay from a to b and back, else p's
	}{
		{"rate and delay", link.Params{Rate: 20e6, Delay: 40 * ms}, 10e6, 0},
		{"fast", link.Params{Rate: 60e6, Delay: 20 * ms}, 100e6, 0},
		{"lossy", link.Params{Rate: 5e6, Delay: 30 * ms, Loss: 0.03}, 5e6, 0},
		{"jitter", link.Params{Rate: 20e6, Delay: 50 * ms, Jitter: 10 * ms}, 20e6, 0},
		{"a pair", link.Params{Rate: 20e6, Delay: 30 * ms}, 20e6, 100 * ms},
		{"long", link.Params{Delay: 500 * ms}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := link.Topology{Up: map[string]link.Params{}, Down: map[string]link.Params{}}
			for _, h := range hosts {
				top.Up[h.Addr().String()], top.Down[h.Addr().String()] = c.p, link.Params{Rate: c.down}
			}
			if c.pair > 0 {
				p, a, b := link.Params{Delay: c.pair}, hosts[0].Addr().String(), hosts[1].Addr().String()
				top.Pairs = map[link.Pair]link.Params{{a, b}: p, {b, a}: p}
			}
			must(t, tb.Shape(t.Context(), testbed.ShapeSpec{Topology: top}))
			if c.pair > 0 {
				checked(t, tb, hosts[0], hosts[2])
			}
			checked(t, tb, hosts[0], hosts[1])
			began := time.Now()
			_, _ = hosts[1].Traffic()
			if took := time.Since(began); took > 250*ms {
				t.Errorf("a call of the engine took %v", took)
			}
		})
	}
	must(t, tb.ProbeMesh(t.Context()))
	way(100 * ms)
	if moved := tb.MeshMoved(t.Context()); !strings.Contains(moved, "changed from") {
		t.Errorf("the ways are longer: %q", moved)
	}
	way(600 * ms)
	wantError(t, tb.ProbeMesh(t.Context()), "raise link.delay")
	way(0)
	must(t, tb.Close(t.Context())) // what is left is an agent whose engine is gone

	all[1].kill()
	free(t, all[1])
	all[1].start()
	tb, hosts = engineOf(t, all)
	p := link.Params{Rate: 20e6, Delay: 20 * ms}
	both := map[string]link.Params{hosts[1].Addr().String(): p}
	spec := testbed.ShapeSpec{Topology: link.Topology{Up: both, Down: both}}
	must(t, tb.Shape(t.Context(), spec))
	checked(t, tb, hosts[0], hosts[1])
	p.Rate = 5e6
	both[hosts[1].Addr().String()] = p
	must(t, tb.Reshape(t.Context(), spec))
	checked(t, tb, hosts[1], hosts[0])
}

// checked measures a link, again if it is off: a machine may have a bad moment.
func checked(t *testing.T, tb *testbed.Testbed, from, to testbed.Host) {
	t.Helper()
	var off error
	for range 3 {
		want := tb.Want(from, to)
		c, err := tb.Check(t.Context(), from, to, 0.1)
		must(t, err)
		t.Logf("asked: %v, %.4g bit/s, loss %.3g; measured: %.2f ms (99 %%: %.2f), %.4g of %.4g bit/s of payload, "+
			"loss %.3g; %s", want.RTT, want.Rate, want.Loss, c.RTT*1e3, c.RTTP99*1e3, c.Rate, c.WantRate, c.Loss, c.Why)
		off = nil
		rtt := want.RTT.Seconds()
		if most := rtt + max(0.1*rtt, 5e-3) + want.Jitter.Seconds(); c.RTT < rtt-2e-3-want.Jitter.Seconds() || c.RTT > most {
			off = fmt.Errorf("round trip %v", c.RTT)
		}
		if want.Rate > 0 && (c.Rate < 0.7*c.WantRate || c.Rate > 1.05*c.WantRate) {
			off = fmt.Errorf("rate %g", c.Rate)
		}
		if want.Loss > 0 && math.Abs(c.Loss-want.Loss) > 0.3*want.Loss {
			off = fmt.Errorf("loss %g", c.Loss)
		}
		if c.Emulator != "netem over VXLAN" {
			t.Errorf("emulator %s", c.Emulator)
		}
		if off == nil {
			return
		}
	}
	t.Errorf("the link is off: %v", off)
}

// free waits until nothing of tunnels is left in a machine's network.
func free(t *testing.T, b *box) {
	t.Helper()
	nl := open(t, b.ns)
	eventually(t, "what the agent that is killed had is free", func() bool {
		err := link.InNamespace(int(b.ns), func() error {
			c, err := net.ListenPacket("udp", ":7701")
			if err == nil {
				err = c.Close()
			}
			return err
		})
		links, listed := nl.LinkList()
		must(t, listed)
		return err == nil && len(links) == 2 // lo and eth0
	})
}
