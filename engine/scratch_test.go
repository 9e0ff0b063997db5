package engine

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
	"io"
	"math/rand/v2"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/bittorrent"
	"github.com/plimsoll-project/plimsoll/system/deluge"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

func TestScratch(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("N"))
	if n == 0 {
		t.Skip()
	}
	ctx := t.Context()
	bed, err := testbed.New(ctx, testbed.Options{Dir: t.TempDir(), Log: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { b := time.Now(); bed.Close(context.Background()); fmt.Println("close", time.Since(b)) }()
	client, _ := bed.AddHost(ctx, "client")
	sets, _ := strconv.Atoi(os.Getenv("SETS"))
	var hosts []testbed.Host
	begun := time.Now()
	for s := range max(1, sets) {
		for i := range n {
			h, err := bed.AddHost(ctx, fmt.Sprintf("s%d-%02d", s, i))
			if err != nil {
				t.Fatal(err)
			}
			hosts = append(hosts, h)
		}
		fmt.Println("hosts", len(hosts), time.Since(begun))
	}
	var sys system.System = bittorrent.System{}
	opt := system.Options{"client": "false"}
	if os.Getenv("SYS") == "deluge" {
		sys, opt = deluge.System{}, nil
	}
	begun = time.Now()
	c, err := sys.Start(ctx, system.Deployment{Hosts: hosts[:n], Client: client, Dir: t.TempDir(), Options: opt})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("start", time.Since(begun))
	defer func() { b := time.Now(); c.Stop(context.Background()); fmt.Println("stop", time.Since(b)) }()
	begun = time.Now()
	errp := probeOnce(ctx, c)
	fmt.Println("probe", time.Since(begun), errp)
	spec := testbed.ShapeSpec{Up: map[string]link.Params{}, Down: map[string]link.Params{}}
	for _, h := range hosts[:n] {
		spec.Up[h.Name()] = link.Params{Rate: 100e6, Delay: 20 * time.Millisecond}
		spec.Down[h.Name()] = link.Params{Rate: 100e6}
	}
	for range 3 {
		begun = time.Now()
		if err := bed.Shape(ctx, spec); err != nil {
			t.Fatal(err)
		}
		fmt.Println("shape", time.Since(begun))
	}
	begun = time.Now()
	for range 5 {
		bed.Poll(begun)
	}
	fmt.Println("poll", time.Since(begun)/5)
	begun = time.Now()
	s := &site{cluster: c}
	f := startFootprint(s)
	fmt.Println("footprint start", time.Since(begun))
	begun = time.Now()
	f.details()
	fmt.Println("footprint details", time.Since(begun))
	begun = time.Now()
	check, err := bed.Check(ctx, hosts[0], hosts[1], bed.Want(hosts[0], hosts[1]), 0.05)
	fmt.Println("check", time.Since(begun), check.OK, check.Why, err)
	var nodes []system.Spreader
	var addrs []string
	for _, n := range c.Nodes() {
		nodes = append(nodes, n.(system.Spreader))
		a, _ := n.(system.Spreader).Address(ctx)
		addrs = append(addrs, a)
	}
	mb, _ := strconv.Atoi(os.Getenv("MB"))
	if mb == 0 {
		mb = 20
	}
	size := int64(mb) << 20
	src := rand.New(rand.NewPCG(1, 2))
	_ = src
	begun = time.Now()
	ref, err := nodes[0].Publish(ctx, "x", size, io.LimitReader(rand.NewChaCha8([32]byte{1}), size))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("publish", time.Since(begun))
	before, _, _ := bed.EmulatorStats(ctx)
	p0 := bed.Poll(begun)
	begun = time.Now()
	for _, nd := range nodes[1:] {
		if err := nd.Fetch(ctx, ref, addrs); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Println("fetch told", time.Since(begun))
	for {
		done := 0
		for _, nd := range nodes[1:] {
			f, err := nd.Fetched(ctx, ref)
			if err != nil {
				t.Fatal(err)
			}
			if f.Complete {
				done++
			}
		}
		if done == len(nodes)-1 {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatal("too long", done)
		}
		time.Sleep(200 * time.Millisecond)
	}
	took := time.Since(begun)
	p1 := bed.Poll(begun)
	after, _, _ := bed.EmulatorStats(ctx)
	d := after.Since(before)
	fmt.Println("spread", took, "late p99", d.Lateness.Quantile(0.99), "trouble", d.Trouble(time.Millisecond), "drops", d.Drops)
	cpu := map[string]float64{}
	rss := 0.0
	for i, x := range p1 {
		cpu[x.Role] += x.CPU
		if i < len(p0) { cpu[x.Role] -= p0[i].CPU }
		if x.Role == "system" { rss = max(rss, x.RSS) }
	}
	fmt.Println("cpu", cpu, "of", took.Seconds(), "rss max", rss/1e6)
	var peak, sum float64
	for _, nd := range nodes {
		for _, p := range nd.Processes() {
			m := p.Memory()
			peak = max(peak, m.Peak)
			sum += m.Peak
		}
	}
	fmt.Println("peak", peak/1e6, "mean", sum/1e6/float64(n))
}
