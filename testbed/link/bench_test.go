package link

import (
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkLink measures one cubic stream through emulated links, and the round
// trip on idle ones. Figures of a machine that does other work at the time say
// little about the emulator; cpu-emulator is its thread's share of a core.
func BenchmarkLink(b *testing.B) {
	for _, c := range []struct {
		name string
		p    Params
	}{
		{"unlimited", Params{}},
		{"100M_20ms", Params{Rate: 1e8, Delay: 20 * time.Millisecond}},
		{"1G_40ms", Params{Rate: 1e9, Delay: 40 * time.Millisecond}},
		{"10G_40ms", Params{Rate: 1e10, Delay: 40 * time.Millisecond}},
	} {
		b.Run("stream/"+c.name, func(b *testing.B) { benchStream(b, c.p) })
	}
	for _, rtt := range []time.Duration{0, 2 * time.Millisecond, 80 * time.Millisecond} {
		b.Run(fmt.Sprintf("rtt/%v", rtt), func(b *testing.B) { benchRTT(b, rtt) })
	}
}

// benchStream sends for six seconds and looks at the last three.
func benchStream(b *testing.B, p Params) {
	l := newLab(b, "a", "b")
	l.shape(symmetric(p, "a", "b"))
	for b.Loop() {
		sender, receiver := tcpPair(b, l.hosts["a"], l.hosts["b"])
		go discard(receiver)
		stop := stream(sender)
		time.Sleep(3*time.Second + 20*p.Delay)
		senders := []*net.TCPConn{sender}
		s := l.stats()
		before, t0, err := delivered(senders)
		if err != nil {
			b.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		after, t1, err := delivered(senders)
		if err != nil {
			b.Fatal(err)
		}
		s = l.stats().Since(s)
		bits, seconds := float64(after-before)*8, t1.Sub(t0).Seconds()
		stop()
		b.ReportMetric(bits/seconds/1e9, "Gbit/s")
		b.ReportMetric(s.CPU.Seconds()/seconds, "cpu-emulator")
		b.ReportMetric(float64(s.Lateness.Quantile(0.99))/1e6, "late-p99-ms")
		b.ReportMetric(0, "ns/op")
		b.Log(s.Scheduler, "drops", s.Drops)
	}
}

func benchRTT(b *testing.B, rtt time.Duration) {
	l := newLab(b, "a", "b")
	top := symmetric(Params{Delay: rtt / 2}, "a", "b")
	l.shape(top)
	// The link's round trip is asked for, not how long this process waits for a
	// processor.
	if prioritize() != "fifo" {
		b.Log("ordinary priority: on a busy machine the figures are this process's")
	}
	defer everyThread(func(tid int) error {
		return unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0)
	})
	i := l.hosts["a"].initiateTo(b, l.hosts["b"], top.Want("a", "b"))
	for b.Loop() {
		var all []time.Duration
		for range 10 {
			r, err := i.measureRTT(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			all = append(all, r...)
		}
		slices.Sort(all)
		b.ReportMetric(float64(quantile(all, 0.5))/1e6, "p50-ms")
		b.ReportMetric(float64(quantile(all, 0.99))/1e6, "p99-ms")
		b.ReportMetric(0, "ns/op")
	}
}

// BenchmarkIperf is the same stream, sent and measured by iperf3.
func BenchmarkIperf(b *testing.B) {
	if _, err := exec.LookPath("iperf3"); err != nil {
		b.Skip("iperf3 is not installed")
	}
	for _, rate := range []float64{1e9, 1e10} {
		b.Run(fmt.Sprintf("%gG_40ms", rate/1e9), func(b *testing.B) {
			l := newLab(b, "a", "b")
			l.shape(symmetric(Params{Rate: rate, Delay: 40 * time.Millisecond}, "a", "b"))
			for b.Loop() {
				r := l.iperf("a", "b", "-t", "3", "-O", "4", "-C", "cubic")
				b.ReportMetric(r.End.SumReceived.BitsPerSecond/1e9, "Gbit/s")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

// BenchmarkNetwork is the data path without its system calls: one super-packet
// of 44 segments through two queues.
func BenchmarkNetwork(b *testing.B) {
	for _, loss := range []float64{0, 0.01} {
		b.Run(fmt.Sprintf("loss=%v", loss), func(b *testing.B) {
			n := newNetwork(1, &pool{limit: 1 << 30})
			var now int64
			n.clock = func() int64 { return now }
			n.deliver = func(due []event, done func(event, bool)) {
				for _, ev := range due {
					done(ev, true)
				}
			}
			n.add("a", nil)
			n.add("b", []netip.Addr{hostAddr(1)})
			n.reshape(symmetric(Params{Rate: 1e10, Delay: 40 * time.Millisecond, Loss: loss}, "a", "b"))
			s := &sim{n: n}
			s.send(0, 1, 44, 0) // makes the template
			b.ReportAllocs()
			for b.Loop() {
				now += 53e3
				s.now = now
				s.send(0, 1, 44, 0)
				n.advance(now)
			}
		})
	}
}
