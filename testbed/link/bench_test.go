package link

import (
	"fmt"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkLink measures cubic streams through links that our emulator shapes, or the kernel's token
// bucket. Figures of a machine that does other work at the time say little. cpu-s/GB is the processor time
// of the emulator and both ends.
func BenchmarkLink(b *testing.B) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name           string
		pairs, threads int // of hosts, of the emulator; 0: the token bucket
		p              Params
	}{
		{"unlimited", 1, 2, Params{}},
		{"100M_20ms", 1, 2, Params{Rate: 1e8, Delay: 20 * ms}},
		{"1G_40ms", 1, 2, Params{Rate: 1e9, Delay: 40 * ms}},
		{"10G_40ms", 1, 2, Params{Rate: 1e10, Delay: 40 * ms}},
		{"8x100M_1ms/1", 8, 1, Params{Rate: 1e8, Delay: ms}},
		{"8x100M_1ms/2", 8, 2, Params{Rate: 1e8, Delay: ms}},
		{"8x100M/1", 8, 1, Params{Rate: 1e8}},
		{"8x100M/tbf", 8, 0, Params{Rate: 1e8}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var names []string
			for i := range 2 * c.pairs {
				names = append(names, hostName(i))
			}
			var hosts map[string]*labHost
			emulator, top := func() Stats { return Stats{} }, symmetric(c.p, names...)
			if c.threads > 0 {
				l := newLabWith(b, Options{Seed: 7, Threads: c.threads}, names...)
				l.shape(b, top)
				hosts, emulator = l.hosts, func() Stats { return l.stats(b) }
			} else {
				var shape func(Topology) error
				shape, hosts = onHub(b, TBFDiscipline, names...)
				if err := shape(top); err != nil {
					b.Skip(err)
				}
			}
			for b.Loop() {
				benchStreams(b, c.p, hosts, names, emulator)
			}
		})
	}
}

// BenchmarkSwarm measures what a swarm of 16 costs whose links are half used: each host sends blocks of
// 16 KiB to all others in turn.
func BenchmarkSwarm(b *testing.B) {
	const (
		hosts = 16
		block = 16 << 10
		rate  = 1e8
		load  = 0.5
	)
	var names []string
	for i := range hosts {
		names = append(names, hostName(i))
	}
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprint(threads), func(b *testing.B) {
			l := newLabWith(b, Options{Seed: 7, Threads: threads}, names...)
			l.shape(b, symmetric(Params{Rate: rate, Delay: 5 * time.Millisecond}, names...))
			stop := make(chan struct{})
			defer close(stop)
			for _, from := range names {
				var senders []*net.TCPConn
				for _, to := range names {
					if from != to {
						sender, receiver := tcpPair(b, l.hosts[from], l.hosts[to])
						go discard(receiver)
						senders = append(senders, sender)
					}
				}
				go func() {
					t := time.NewTicker(time.Duration(block * 8e9 / (rate * load)))
					defer t.Stop()
					buf := make([]byte, block)
					for i := 0; ; i++ {
						select {
						case <-t.C:
						case <-stop:
							return
						}
						senders[i%len(senders)].Write(buf)
					}
				}()
			}
			time.Sleep(time.Second)
			for b.Loop() {
				s, cpu := l.stats(b), ownCPU()
				time.Sleep(5 * time.Second)
				s = l.stats(b).Since(s)
				reportCost(b, s, ownCPU()-cpu, float64(s.all().Received.Bytes)/1e9)
			}
		})
	}
}

// benchStreams sends for six seconds between pairs of hosts and looks at the last three.
func benchStreams(b *testing.B, p Params, hosts map[string]*labHost, names []string, emulator func() Stats) {
	var senders []*net.TCPConn
	for i := 0; i < len(names); i += 2 {
		sender, receiver := tcpPair(b, hosts[names[i]], hosts[names[i+1]])
		go discard(receiver)
		defer stream(sender)()
		senders = append(senders, sender)
	}
	time.Sleep(3*time.Second + 20*p.Delay)
	s, cpu := emulator(), ownCPU()
	before, t0, err := delivered(senders)
	must(b, err)
	time.Sleep(3 * time.Second)
	after, t1, err := delivered(senders)
	must(b, err)
	s, cpu = emulator().Since(s), ownCPU()-cpu
	gb := float64(after-before) / 1e9
	b.ReportMetric(gb*8/t1.Sub(t0).Seconds(), "Gbit/s")
	reportCost(b, s, cpu, gb)
	b.Log("drops", s.Drops)
}

// reportCost reports what carrying so many GB has cost the emulator, and both ends with it.
func reportCost(b *testing.B, s Stats, ends time.Duration, gb float64) {
	b.ReportMetric(s.CPU.Seconds()/gb, "cpu-s/GB-emulator")
	b.ReportMetric((s.CPU+ends).Seconds()/gb, "cpu-s/GB")
	b.ReportMetric(float64(s.Lateness.Quantile(0.99))/1e6, "late-p99-ms")
	b.ReportMetric(0, "ns/op")
}

func ownCPU() time.Duration {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
