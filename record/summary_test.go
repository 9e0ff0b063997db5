package record

import (
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"
)

func TestSummaryOfKnownOperations(t *testing.T) {
	s := NewSummary()
	ms := int64(time.Millisecond)
	s.Ops([]Op{
		{Outcome: OK, Bytes: 100, Intended: 10 * ms, Start: 12 * ms, FirstByte: 20 * ms, LastByte: 110 * ms},
		{Outcome: OK, Bytes: 100, Intended: 5 * ms, Start: 5 * ms, FirstByte: 25 * ms, LastByte: 30 * ms},
		{Outcome: Error, Class: "status 500", Bytes: 7, Start: 20 * ms, Intended: 20 * ms, FirstByte: 21 * ms,
			LastByte: 21 * ms},
		{Outcome: Truncated, Class: "body ended early", Bytes: 3, Start: 20 * ms, Intended: 20 * ms, FirstByte: 21 * ms,
			LastByte: 21 * ms},
		{Outcome: Deadline, Bytes: 50, Start: 20 * ms, Intended: 20 * ms, FirstByte: 50 * ms, LastByte: 500 * ms},
		{Outcome: InFlight, Start: 20 * ms, Intended: 20 * ms, LastByte: 400 * ms},
	})
	want := Counts{Ops: 6, Bytes: 260, OKBytes: 200, First: 5 * ms, Last: 500 * ms,
		Outcomes: [numOutcomes]int64{OK: 2, Error: 1, Truncated: 1, Deadline: 1, InFlight: 1},
		Classes:  map[string]int64{"status 500": 1, "body ended early": 1}}
	if c := s.Counts(); !reflect.DeepEqual(c, want) || c.Finished() != 4 || c.OutcomeMap()["in-flight"] != 1 {
		t.Errorf("%+v", c)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if got != want && !(math.Abs(got-want) <= want/1000) {
			t.Errorf("%s = %v, want %v", what, got, want)
		}
	}
	// From the intended start; failures are not in it, the deadline's first byte is.
	near("ttfb", s.Quantile(TTFB, 0), 0.010)
	near("ttfb", s.Quantile(TTFB, 0.5), 0.020)
	near("ttfb", s.Quantile(TTFB, 1), 0.030)
	near("duration", s.Quantile(Duration, 0.5), 0.025)
	near("duration", s.Quantile(Duration, 1), 0.100)
	for m, want := range map[Measure][2]int64{TTFB: {3, 1}, Duration: {2, 2}} {
		if got := [2]int64{s.Count(m), s.censored[m].count()}; got != want {
			t.Errorf("%s: %d counted and censored, want %d", m, got, want)
		}
	}
	near("half", s.KaplanMeier(Duration, 0.5), 0.100)
	near("beyond what was watched", s.KaplanMeier(Duration, 0.9), math.Inf(1))
	if !math.IsNaN(NewSummary().Quantile(TTFB, 0.5)) || !math.IsNaN(s.Quantile(TTFB, 1.5)) {
		t.Error("a quantile of nothing")
	}
	// What has no first byte is not known to have come late.
	for _, kind := range []OpKind{OpPut, OpDelete, OpStat} {
		s.Ops([]Op{{Kind: kind, Outcome: InFlight, Start: 20 * ms, Intended: 20 * ms, LastByte: 400 * ms}})
	}
	if s.censored[TTFB].count() != 1 || s.censored[Duration].count() != 5 {
		t.Errorf("%d first bytes censored, %d durations", s.censored[TTFB].count(), s.censored[Duration].count())
	}
}

func TestHistogramPrecisionAndRange(t *testing.T) {
	for ns := int64(1); ns <= int64(maxTracked); ns = ns*5/4 + 1 {
		h := newHistogram()
		h.record(ns)
		got := h.quantile(0.5) * 1e9
		if math.Abs(got-float64(ns)) > float64(ns)/1000+1e-3 {
			t.Fatalf("%d ns came back as %v", ns, got)
		}
	}
	h := newHistogram()
	h.record(-5)
	h.record(int64(maxTracked))
	h.record(int64(maxTracked) + 1)
	if h.count() != 3 || h.over != 1 || h.quantile(0) != 0 || !math.IsInf(h.quantile(1), 1) {
		t.Errorf("count %d, overflow %d, quantiles %v to %v", h.count(), h.over, h.quantile(0), h.quantile(1))
	}
	if got := h.quantile(0.6); math.Abs(got-3600) > 3.6 {
		t.Errorf("the largest value tracked came back as %v s", got)
	}
}

func TestQuantileIsTheOrderStatistic(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	s := NewSummary()
	var all []float64
	for range 999 {
		took := int64(1e6 * math.Exp(2*r.NormFloat64()))
		s.Ops([]Op{{LastByte: took, FirstByte: took}})
		all = append(all, float64(took)/1e9)
	}
	slices.Sort(all)
	for _, q := range []float64{0.001, 0.25, 0.5, 0.9, 0.99, 1} {
		want := all[int(math.Ceil(q*999))-1]
		if got := s.Quantile(Duration, q); math.Abs(got-want) > want/1000 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
}

// In a window that closes at a fixed time long operations are cut off more
// often: leaving them out makes the tail look short.
func TestKaplanMeierIsNotFooledByCensoring(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	s := NewSummary()
	for range 200_000 {
		took := int64(r.ExpFloat64() * 1e9)
		watched := int64(r.Float64() * 8e9)
		op := Op{Outcome: OK, FirstByte: min(took, watched), LastByte: min(took, watched)}
		if took > watched {
			op.Outcome = InFlight
		}
		s.Ops([]Op{op})
	}
	for _, q := range []float64{0.5, 0.9, 0.99} {
		want := -math.Log(1 - q)
		if got := s.KaplanMeier(Duration, q); math.Abs(got-want) > want/20 {
			t.Errorf("quantile %v estimated %v, true %v", q, got, want)
		}
	}
	if naive := s.Quantile(Duration, 0.99); naive > -math.Log(0.01)*0.95 {
		t.Errorf("the naive quantile %v is as good: the test shows nothing", naive)
	}
}

func TestClassesAreBounded(t *testing.T) {
	s := NewSummary()
	for i := range 5000 {
		s.Ops([]Op{{Outcome: Error, Class: strconv.Itoa(i)}})
	}
	c := s.Counts()
	if len(c.Classes) > maxClasses+1 || c.Classes[otherClasses] != 5000-maxClasses {
		t.Errorf("%d classes, %d others", len(c.Classes), c.Classes[otherClasses])
	}
}

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
