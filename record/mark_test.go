package record

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// syntheticMark is mark i of a swarm of 32 nodes, of which each leaves one for
// each percent of 100 MB, at a hundred polls a second. It can be told from i alone.
func syntheticMark(i int64) Mark {
	rng := rand.New(rand.NewPCG(uint64(i), 3))
	at := 100*time.Millisecond*time.Duration(i/32) + time.Duration(rng.IntN(10_000_000))
	verified := (1+i/32)*1_000_000 + rng.Int64N(16)*16384
	m := Mark{
		Node: int(i % 32), Before: at - 100*time.Millisecond, Start: at, End: at + time.Duration(rng.IntN(3_000_000)),
		Verified: verified, Written: verified - rng.Int64N(2)*16384, Received: verified + rng.Int64N(10)*16384,
		Sent: rng.Int64N(2 * verified), Peers: rng.IntN(32),
	}
	switch i % 7 {
	case 1:
		m.Written, m.Received, m.Sent, m.Peers = -1, -1, -1, -1
	case 2:
		m.Complete = true
	case 3:
		m.Trouble = "hash check failed: \"ü\"\n"
	case 4:
		m.Written, m.Peers = 0, 0
	}
	return m
}

func syntheticMarks(from, n int64) []Mark {
	marks := make([]Mark, n)
	for i := range marks {
		marks[i] = syntheticMark(from + int64(i))
	}
	return marks
}

func TestMarksAreReadBack(t *testing.T) {
	r := create(t)
	var writers []*TrialWriter
	for block := range 2 {
		w, err := r.Begin("c001", block, false, time.Now())
		must(t, err)
		writers = append(writers, w)
	}
	n := int64(2*page + 3)
	for from := int64(0); from < n; from += 501 {
		for i, w := range writers { // two trials at once do not mix
			must(t, w.Marks(syntheticMarks(from+int64(i)*n, min(501, n-from))))
		}
	}
	must(t, r.Flush())
	for i, w := range writers {
		if d := cmp.Diff(syntheticMarks(int64(i)*n, n), collect(t, r.Marks(w.ID()))); d != "" {
			t.Errorf("marks of trial %d (-want +got):\n%s", w.ID(), d)
		}
	}
	if got := collect(t, r.Marks(99)); len(got) > 0 {
		t.Errorf("a trial that there is not has %d marks", len(got))
	}
}
