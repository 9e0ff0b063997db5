package link

import (
	"cmp"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestThreadsDeliverTheSame sends the same packets through one network and through
// those of several threads: each must arrive at the same moment, or be lost.
func TestThreadsDeliverTheSame(t *testing.T) {
	const hosts = 5
	top := Topology{Up: map[string]Params{}, Down: map[string]Params{}}
	for i := range hosts {
		top.Up[hostName(i)] = Params{Rate: 1e8, Delay: 3 * time.Millisecond, Jitter: time.Millisecond, Loss: 0.02}
		top.Down[hostName(i)] = Params{Rate: 5e7, Delay: time.Duration(i) * time.Millisecond}
	}
	run := func(threads int) (got []delivery, sent Count) {
		sims := make([]*sim, threads)
		for i := range sims {
			sims[i] = newSim(t, hosts, top)
		}
		for i, s := range sims {
			if threads == 1 {
				break
			}
			s.n.forward = func(ev event) bool {
				to := int(ev.dst) % threads
				if to != i {
					sims[to].n.pending.push(ev)
				}
				return to != i
			}
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for step := range 4000 {
			src := rng.IntN(hosts)
			dst := (src + 1 + rng.IntN(hosts-1)) % hosts
			for _, s := range sims {
				s.until(int64(step) * 61e3)
			}
			sims[src%threads].send(src, dst, 1+rng.IntN(8), uint32(step))
		}
		total := Stats{Drops: map[string]Count{}, Hosts: map[string]HostStats{}}
		for _, s := range sims {
			s.run()
			got = append(got, s.got...)
			total = total.Merge(s.n.stats())
		}
		var received Count
		for _, h := range total.Hosts {
			received = received.plus(h.Received, 1)
		}
		if received != total.Out ||
			total.In != total.Out.plus(total.Drops[DropLoss], 1).plus(total.Drops[DropUp], 1).plus(total.Drops[DropDown], 1) {
			t.Errorf("%d threads: counters do not add up: %+v", threads, total)
		}
		slices.SortFunc(got, func(a, b delivery) int {
			return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.at, b.at), cmp.Compare(a.mark, b.mark))
		})
		return got, total.In
	}
	want, sent := run(1)
	if len(want) < 1000 || sent.Segments < 10000 {
		t.Fatalf("%d deliveries of %d segments: too few to compare", len(want), sent.Segments)
	}
	for _, threads := range []int{2, 3} {
		got, _ := run(threads)
		same := slices.EqualFunc(got, want, func(a, b delivery) bool {
			return a.host == b.host && a.at == b.at && a.mark == b.mark && a.segs == b.segs
		})
		if !same {
			t.Errorf("%d threads deliver otherwise than one: %d packets, %d of one", threads, len(got), len(want))
		}
	}
}

// BenchmarkShapers is eight streams of 100 Mbit/s: by the emulator with one and two
// threads, and by the kernel's token bucket. CPU is that of both ends and the emulator.
func BenchmarkShapers(b *testing.B) {
	for _, c := range []struct {
		name    string
		threads int
		delay   time.Duration
	}{{"user/1", 1, time.Millisecond}, {"user/2", 2, time.Millisecond}, {"user/1/rate", 1, 0}, {"tbf/rate", 0, 0}} {
		b.Run(c.name, func(b *testing.B) {
			var names []string
			for i := range 16 {
				names = append(names, hostName(i))
			}
			top := symmetric(Params{Rate: 1e8, Delay: c.delay}, names...)
			var hosts map[string]*labHost
			emulator := func() Stats { return Stats{} }
			if c.threads > 0 {
				l := newLabWith(b, Options{Seed: 7, Threads: c.threads}, names...)
				l.shape(top)
				hosts, emulator = l.hosts, l.stats
			} else {
				var n *Kernel
				n, hosts = onHub(b, TBFDiscipline, names...)
				if err := n.Shape(top); err != nil {
					b.Skip(err)
				}
			}
			for b.Loop() {
				var senders []*net.TCPConn
				for i := 0; i < len(names); i += 2 {
					sender, receiver := tcpPair(b, hosts[names[i]], hosts[names[i+1]])
					go discard(receiver)
					defer stream(sender)()
					senders = append(senders, sender)
				}
				time.Sleep(time.Second)
				s, cpu := emulator(), ownCPU()
				before, t0, err := delivered(senders)
				must(b, err)
				time.Sleep(4 * time.Second)
				after, t1, err := delivered(senders)
				must(b, err)
				s, cpu = emulator().Since(s), ownCPU()-cpu
				gb := float64(after-before) / 1e9
				b.ReportMetric(gb/t1.Sub(t0).Seconds()*8, "Gbit/s")
				b.ReportMetric(s.CPU.Seconds()/gb, "cpu-s/GB-emulator")
				b.ReportMetric((s.CPU+cpu).Seconds()/gb, "cpu-s/GB")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

func ownCPU() time.Duration {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
