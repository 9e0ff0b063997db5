package scenario

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/workload"
)

// arrivals are when n leechers begin, since the release, in their order.
func arrivals(j experiment.Join, n int, seed uint64) []time.Duration {
	at := make([]time.Duration, n)
	switch {
	case j.Wave > 0:
		for i := range at {
			at[i] = time.Duration(i/j.Wave) * j.Every.Std()
		}
	case j.Poisson > 0:
		// The first comes at once: before it there is nothing to see.
		p := workload.Poisson{PerSecond: float64(j.Poisson), Seed: seed}
		for i := 1; i < n; i++ {
			gap, _ := p.Pace(at[i-1], uint64(i))
			at[i] = at[i-1] + gap
		}
	}
	return at
}

// spread releases the leechers and returns when it is decided what becomes of each.
func (t *swarmTrial) spread(ctx context.Context) error {
	load, cancel := context.WithCancelCause(ctx)
	t.load = load
	barrier := make(chan struct{})
	var ready sync.WaitGroup
	for i, m := range t.leechers {
		ready.Add(1)
		t.group.Go(func() {
			ready.Done()
			select {
			case <-barrier:
				t.lead(i, m)
			case <-load.Done():
			}
		})
	}
	ready.Wait()
	release := func() {
		for _, m := range t.members {
			t.mourn(m)
		}
		for _, m := range t.leechers {
			m.leecher.released = t.released + m.leecher.offset
		}
		for _, f := range t.faults {
			t.plan(&f.courseFault, func() { t.begin(f) }, func() { t.undo(f) })
		}
		t.reached()
		close(barrier)
	}
	return t.run(cancel, release, t.judge, func() (done, bytes int64) { return int64(t.done), t.verified })
}

// lead takes a leecher through the trial, from its arrival on.
func (t *swarmTrial) lead(i int, m *member) {
	if m.leecher.offset > 0 && !t.until(m.leecher.released) {
		return
	}
	t.mu.Lock()
	now := t.now()
	over := m.leecher.ended > 0 // its node was lost before it came
	if !over {
		m.leecher.started, m.leecher.asked, m.leecher.progress = now, now, now
	}
	down := !m.serving()
	t.mu.Unlock()
	if over {
		return
	}
	if !down { // else it is told of its task when it is back
		t.fetch(m)
	}
	t.watch(i, m)
}

// fetch tells a leecher of its task.
func (t *swarmTrial) fetch(m *member) {
	t.mu.Lock()
	life := m.life
	from := t.peers(m)
	begun := t.now()
	if m.leecher.called == 0 {
		m.leecher.called = begun
	}
	t.mu.Unlock()
	one, cancel := context.WithTimeout(t.load, t.starting)
	err := m.node.Fetch(one, t.ref, from)
	cancel()
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	l := m.leecher
	switch {
	case m.life != life || !m.serving(), err != nil && t.load.Err() != nil: // it ended meanwhile, or the trial did
		return
	case err != nil:
		outcome, class, _ := outcomeOf(err, nil)
		l.end(now, outcome, class)
		t.event("node", "task refused", m.name+": "+shorten(err), now, now-begun)
	default:
		l.told, l.progress = true, max(l.progress, begun)
		if m.life > 0 { // what it had before it was killed came no later than that
			l.asked = now
		}
	}
	t.wake()
}

// peers are the addresses that a leecher is told: those of all seeders and of all
// other leechers that have come, so that, as with a tracker, everyone knows
// everyone; who comes later tells those who were there by connecting to them.
// Seeders come first, turned by the leecher's place in the order, so that a node
// that uses only the first is not the same one's guest as all others. The lock is
// the caller's.
func (t *swarmTrial) peers(m *member) []string {
	at := slices.Index(t.leechers, m)
	var from []string
	for i := range t.seeders {
		from = append(from, t.seeders[(at+i)%len(t.seeders)].address)
	}
	now := t.now()
	for i := range t.leechers {
		other := t.leechers[(at+i)%len(t.leechers)]
		if other != m && other.leecher.released <= now && !other.left {
			from = append(from, other.address)
		}
	}
	return from
}

// mourn notes it when a node's daemon ends by itself. The lock is the caller's.
func (t *swarmTrial) mourn(m *member) {
	life := m.life
	for _, p := range m.node.Processes() {
		t.group.Go(func() {
			select {
			case <-t.load.Done():
				return
			case <-p.Done():
			}
			now := t.now()
			t.mu.Lock()
			defer t.mu.Unlock()
			if m.life != life || m.down || m.died != nil {
				return
			}
			m.stale = true
			if m.died = p.Err(); m.died == nil {
				m.died = errors.New("it ended")
			}
			t.event("node", classDied, m.name+": "+shorten(m.died), now, 0)
			if l := m.leecher; l != nil && !m.left {
				l.lost(now, record.Error, classDied)
			}
			t.wake()
		})
	}
}
