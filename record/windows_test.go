package record

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// Windows must hold every operation exactly once, whatever the order in which
// they are recorded, and all of their bytes.
func TestWindowsAreExact(t *testing.T) {
	ops := newSynthetic(7, 20).take(1500) // 75 seconds
	for i := range ops {
		if i%50 == 0 { // some last for many windows
			ops[i].Start -= min(ops[i].Start, 20e9)
			ops[i].Intended = ops[i].Start
			if ops[i].FirstByte != 0 {
				ops[i].FirstByte = ops[i].Start + 1
			}
		}
	}
	total, inOrder := windowsOf(t, ops)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
	shuffled, disorder := windowsOf(t, ops)
	if total != shuffled || len(inOrder) != len(disorder) {
		t.Fatalf("%d and %d windows", len(inOrder), len(disorder))
	}

	perSecond := map[int64]int64{}
	var bytes int64
	for _, op := range ops {
		perSecond[op.LastByte/1e9]++
		bytes += op.Bytes
	}
	var got int64
	for i, w := range inOrder {
		if opsOf(w) != perSecond[w.Second] {
			t.Errorf("second %d has %d operations, want %d", w.Second, opsOf(w), perSecond[w.Second])
		}
		got += w.Bytes
		d := disorder[i]
		if d != w {
			t.Errorf("second %d depends on the order: %+v, %+v", w.Second, w, d)
		}
	}
	if got != bytes {
		t.Errorf("%d bytes, want %d", got, bytes)
	}
}

func windowsOf(t *testing.T, ops []Op) (n int64, all []Window) {
	t.Helper()
	r := create(t)
	w := begin(t, r, 1)
	for len(ops) > 0 {
		k := min(97, len(ops))
		must(t, w.Ops(ops[:k]))
		if ops = ops[k:]; len(ops)%5 == 0 {
			must(t, r.Flush())
		}
	}
	must(t, w.End(Trial{}))
	all = collect(t, r.Windows(w.ID()))
	return opsOf(all...), all
}

func TestBytesAreSpreadOverTheTransfer(t *testing.T) {
	_, all := windowsOf(t, []Op{{Outcome: OK, Bytes: 1000, Length: 1000, Start: 1e8, Intended: 1e8, FirstByte: 5e8,
		LastByte: 25e8}})
	var got []int64
	for _, w := range all {
		got = append(got, w.Bytes)
	}
	if len(got) != 3 || got[0] != 250 || got[1] != 500 || got[2] != 250 {
		t.Errorf("bytes per second %v, want 250 500 250", got)
	}
	if opsOf(all[0]) != 0 || opsOf(all[2]) != 1 {
		t.Errorf("the operation does not count where it ended: %+v", all)
	}
}

// More seconds than are read at a time, some of them empty.
func TestWindowsOfALongTrial(t *testing.T) {
	var ops []Op
	for i := range int64(2*page + 1) {
		at := 3 * i * 1e9
		ops = append(ops, Op{Start: at, Intended: at, FirstByte: at + 1, LastByte: at + 2, Bytes: i, Length: i})
	}
	_, all := windowsOf(t, ops)
	if len(all) != len(ops) {
		t.Fatalf("%d windows, want %d", len(all), len(ops))
	}
	for i, w := range all {
		if w.Second != int64(3*i) || w.Bytes != int64(i) || opsOf(w) != 1 {
			t.Fatalf("window %d is %+v", i, w)
		}
	}
}

// A trial that runs can be followed without its operations or windows; its end
// replaces what was written on the way.
func TestTotalsOfARunningTrial(t *testing.T) {
	r := create(t)
	w := begin(t, r, 1)
	ops := newSynthetic(3, 1000).take(3 * BlockSize)
	for part := range 3 {
		must(t, w.Ops(ops[part*BlockSize/2:(part+1)*BlockSize/2]))
		if part < 2 {
			must(t, r.Flush())
		} else {
			must(t, w.End(Trial{}))
		}
		want := NewSummary()
		_ = want.Ops(ops[:(part+1)*BlockSize/2])
		c := want.Counts()
		if got := trialsOf(t, r.Reader)[0]; got.Bytes != c.Bytes || !maps.Equal(got.Outcomes, c.OutcomeMap()) {
			t.Errorf("part %d: %s, %d bytes, %v; want %d, %v", part, got.State, got.Bytes, got.Outcomes, c.Bytes,
				c.OutcomeMap())
		}
		s, err := r.Summary(w.ID())
		must(t, err)
		if got := s.Counts(); got.Ops != c.Ops || s.Count(Duration) != want.Count(Duration) {
			t.Errorf("part %d: the summary has %d operations, %d durations; want %d, %d", part, got.Ops,
				s.Count(Duration), c.Ops, want.Count(Duration))
		}
	}
}

// opsOf is the number of operations that ended in the windows.
func opsOf(all ...Window) (n int64) {
	for _, w := range all {
		for _, k := range w.Outcomes {
			n += k
		}
	}
	return n
}
