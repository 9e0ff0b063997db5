package record

import (
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
	if len(c.Classes) > maxClasses+1 || c.Classes[OtherClasses] != 5000-maxClasses {
		t.Errorf("%d classes, %d others", len(c.Classes), c.Classes[OtherClasses])
	}
}
