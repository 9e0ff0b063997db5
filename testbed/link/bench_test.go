package link

import (
	"net"
	"testing"
	"time"
)

// BenchmarkLink measures one cubic stream through emulated links. Figures of a machine that
// does other work at the time say little; cpu-emulator is its thread's share of a core.
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
		b.Run(c.name, func(b *testing.B) { benchStream(b, c.p) })
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
		must(b, err)
		time.Sleep(3 * time.Second)
		after, t1, err := delivered(senders)
		must(b, err)
		s = l.stats().Since(s)
		bits, seconds := float64(after-before)*8, t1.Sub(t0).Seconds()
		stop()
		b.ReportMetric(bits/seconds/1e9, "Gbit/s")
		b.ReportMetric(s.CPU.Seconds()/seconds, "cpu-emulator")
		b.ReportMetric(float64(s.Lateness.Quantile(0.99))/1e6, "late-p99-ms")
		b.ReportMetric(0, "ns/op")
		b.Log("drops", s.Drops)
	}
}
