package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// costOf is what a terabyte costs with the amounts by purpose.
func costOf(spent map[string]float64, period float64) *Money {
	w := newWatch()
	for i := range 3 {
		at := time.Duration(i) * time.Hour
		p := record.Poll{Seq: int64(i), Start: at, End: at + time.Second, Readings: []record.Reading{{Name: system.ReadPeriod, Value: period}}}
		for name, v := range spent {
			p.Readings = append(p.Readings, record.Reading{Name: name, Value: v, Exact: sc(v).String()})
		}
		w.add(&p)
	}
	w.close()
	l := &LoadTest{watch: w, currency: "SC"}
	return w.economy("SC", experiment.Price{}, "", true, 1, 1e12, l.months())
}

// What storing costs is fees and storage, and nothing where storage is no
// purpose of its own; a month is one of the contracts' own period.
func TestCostOfStoring(t *testing.T) {
	near := func(what string, have Num, want float64) {
		t.Helper()
		if math.Abs(float64(have)/want-1) > 1e-9 {
			t.Errorf("%s: %v, want %v", what, have, want)
		}
	}
	m := costOf(map[string]float64{"spent": 100, "spent:fees": 5, "spent:storage": 7, "spent:upload": 11, "spent:accounts": 13, "spent:maintenance": 17, "unspent": 47}, 12960)
	months := 90 / (365.0 / 12)
	near("siad 1.5", m.PerTBMonth.Value, 12/months)
	near("siad 1.5 with bandwidth", m.WithBandwidth.Value, 53/months)
	m = costOf(map[string]float64{"spent": 100, "spent:fees": 5, "spent:storage": 7, "unspent": 88}, 0)
	near("no period is told", m.PerTBMonth.Value, 12/(84/(365.0/12)))
	m = costOf(map[string]float64{"spent": 100, "spent:fees": 5, "spent:upload": 7, "spent:accounts": 1, "unspent": 87}, 0)
	if m.PerTBMonth.Value.Known() {
		t.Errorf("renterd charges storage within uploads, and it is told to cost %v", m.PerTBMonth)
	}
	near("renterd with bandwidth", m.WithBandwidth.Value, 13/(84/(365.0/12)))
	r := &Report{Loads: []LoadTest{{Money: m}}}
	if s := r.summaryWords(); !strings.Contains(s, "is not told") || strings.Contains(s, "fees and storage") {
		t.Errorf("%q", s)
	}
}

// What was paid for contracts between the setting of the budget and the first
// poll belongs to the test, with what contracts that are over had used before.
func TestSpendingCountsFromBeforeTheBudget(t *testing.T) {
	w := newWatch()
	for i, fees := range []float64{9, 9, 12} {
		at := time.Duration(i) * time.Hour
		p := record.Poll{Seq: int64(i), Start: at, End: at + time.Second}
		for name, v := range map[string]float64{system.ReadSpent: fees + 40, "spent:fees": fees, system.ReadUnspent: 40, system.ReadEnded: 3, "ended:fees": 3} {
			p.Readings = append(p.Readings, record.Reading{Name: name, Value: v, Exact: sc(v).String()})
		}
		w.add(&p)
	}
	w.close()
	used := func() Num { return w.economy("SC", experiment.Price{}, "", false, 1, 1e12, 1).Used.Value }
	if have := used(); math.Abs(float64(have)-3) > 1e-9 {
		t.Errorf("since the first poll %v were used: the truth is 3", have)
	}
	e, ok := collect.Baseline([]system.Reading{system.Money(system.ReadSpent, sc(2), 24), system.Money("spent:fees", sc(2), 24), system.Money(system.ReadUnspent, sc(0), 24),
		system.Money(system.ReadEnded, sc(3), 24), system.Money("ended:fees", sc(3), 24)})
	w.baseline(collect.Before(e))
	if have := used(); !ok || math.Abs(float64(have)-10) > 1e-9 {
		t.Errorf("since before the budget %v were used: the truth is 10", have)
	}
}
