package link

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
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
		total := Stats{Drops: Drops{}, Hosts: map[string]HostStats{}}
		for _, s := range sims {
			s.run()
			got = append(got, s.got...)
			total = total.Merge(s.n.stats())
		}
		all := total.all()
		if d := total.Drops; all.Received.Segments+d[DropLoss]+d[DropUp]+d[DropDown] != all.Sent.Segments {
			t.Errorf("%d threads: counters do not add up: %+v", threads, total)
		}
		slices.SortFunc(got, func(a, b delivery) int {
			return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.at, b.at), cmp.Compare(a.mark, b.mark))
		})
		return got, all.Sent
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
