package scenario

import (
	"context"
	"time"
)

// watch asks a leecher how far it is until it is decided what becomes of it. All
// leechers are asked at the same interval, on one schedule of absolute moments
// since the release, over which they are spread evenly, so that the questions of
// many nodes do not meet. A node is asked one question at a time: when an answer
// takes longer, those in between drop out.
func (t *swarmTrial) watch(i int, m *member) {
	phase := t.released + t.every*time.Duration(i+1)/time.Duration(len(t.leechers))
	t.polls(phase, func() (enough bool) {
		t.mu.Lock()
		// One that has all may lose it and begin anew, while a fault is to come.
		over := m.leecher.ended > 0 && (!m.leecher.complete() || len(t.faults) == 0)
		ask := m.serving() && m.leecher.told && m.leecher.ended == 0
		life := m.life
		t.mu.Unlock()
		if ask && !over {
			t.ask(m, life)
		}
		return over
	})
}

// ask asks a leecher how far it is.
func (t *swarmTrial) ask(m *member, life int) {
	one, cancel := context.WithTimeout(t.load, t.patience)
	defer cancel()
	start := t.now()
	f, err := m.node.Progress(one, t.ref)
	end := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil && t.load.Err() != nil || m.life != life || !m.serving() || m.leecher.ended > 0 {
		return
	}
	t.saw(m, start, end, f, err)
}
