package report

import (
	"iter"
	"math"
	"slices"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// acceptedLoad has so many objects accepted, a second apart from 100 s on, each
// after half a second.
func acceptedLoad(n int, size int64, w *watch) *LoadTest {
	l := &LoadTest{info: &Cell{}, shelf: &shelf{}, watch: w, coding: coding{4 << 20, 10, 30}}
	l.info.plan.Upload = &experiment.ResolvedUpload{Concurrency: 5}
	total := int64(0)
	for i := range n {
		l.shelf.accepted = append(l.shelf.accepted, stored{at: 100 + float64(i), took: 0.5, size: size})
		total += size
		l.shelf.bytes = append(l.shelf.bytes, total)
	}
	l.shelf.count = Objects{Accepted: int64(n), Bytes: total}
	l.Objects = l.shelf.count
	return l
}

const sectors = 120 << 20 // that an object of up to 40 MiB takes on 30 servers

// What was there before is not ours, also when the first poll had a gap.
func TestFirstPollWithAGap(t *testing.T) {
	nan := math.NaN()
	w := &watch{start: []float64{1, 110, 200}, end: []float64{2, 111, 201}, values: map[string][]float64{
		system.ReadFiles: {nan, 112, 120}, system.ReadAbsolute: {nan, 112 * sectors, 120 * sectors}}}
	l := acceptedLoad(20, 1, w)
	l.stored()
	l.efficient()
	if l.fresh() || l.Efficiency == nil || math.Abs(float64(l.Efficiency.PerFile)/sectors-1) > 0.15 {
		t.Errorf("100 files of others: fresh %v, %+v", l.fresh(), l.Efficiency)
	}
	w.values[system.ReadFiles] = []float64{nan, 12, 20}
	w.values[system.ReadAbsolute] = []float64{nan, 12 * sectors, 20 * sectors}
	l.stored()
	l.efficient()
	if !l.fresh() || math.Abs(float64(l.Efficiency.PerFile)/sectors-1) > 0.01 {
		t.Errorf("all files are ours: fresh %v, %+v", l.fresh(), l.Efficiency)
	}
}

// What is accepted and on no server is in no efficiency, and a line that is not
// known is not drawn without its padding.
func TestBuffersAreNotOnServers(t *testing.T) {
	w := func() *watch {
		return &watch{start: []float64{1, 300}, end: []float64{2, 301}, values: map[string][]float64{system.ReadAbsolute: {0, 20 * sectors}}}
	}
	for name, values := range map[string]map[string][]float64{
		"uploaded": {system.ReadFileBytes: {0, 20 * 40 << 20}, system.ReadFiles: {0, 100}},
		"buffered": {system.ReadFileBytes: {0, 100 * 40 << 20}, "buffered_bytes": {0, 80 * 40 << 20}, system.ReadFiles: {0, 100}},
	} {
		l := acceptedLoad(100, 40<<20, w())
		for k, v := range values {
			l.watch.values[k] = v
		}
		l.stored()
		l.efficient()
		e := l.Efficiency
		if math.Abs(float64(e.Value.Value)*3-1) > 1e-9 || math.Abs(float64(e.Line)*3-1) > 1e-9 || e.Padding != 1 || math.Abs(float64(e.PerFile)/sectors-1) > 1e-9 {
			t.Errorf("%s: %+v", name, e)
		}
	}
	l := acceptedLoad(100, 1, w())
	l.stored()
	l.efficient()
	if e := l.Efficiency; e.Line.Known() || e.Padding.Known() || e.Sector.Known() || l.coding.known() {
		t.Errorf("less is on servers than the sectors of what was accepted: %+v", e)
	}
}

// File and absolute bandwidth are of one time.
func TestBandwidthsOfOneWindow(t *testing.T) {
	v := []float64{0, 100 * 30 << 20, 100 * 30 << 20}
	w := &watch{start: []float64{1, 200, 10000}, end: []float64{2, 201, 10001}, values: map[string][]float64{system.ReadAbsolute: v}}
	l := acceptedLoad(100, 10<<20, w)
	l.stored()
	if ratio := float64(l.AbsoluteRate.Value / l.FileRate.Value); math.Abs(ratio/3-1) > 0.01 {
		t.Errorf("three times the bytes, and %v times the bandwidth: %v, %v", ratio, l.FileRate, l.AbsoluteRate)
	}
}

// What a poll long after the last acceptance saw may have come at any time before
// it: the bandwidth while objects were accepted is bounded, and not told.
func TestBandwidthThatPollsCannotTell(t *testing.T) {
	w := &watch{start: []float64{1, 700}, end: []float64{2, 701}, values: map[string][]float64{system.ReadAbsolute: {0, 100 * 30 << 20}}}
	l := acceptedLoad(100, 10<<20, w)
	l.stored()
	if e := l.AbsoluteRate; e.Value.Known() || !l.atMost() || !(e.Lo < e.Hi/5) || math.Abs(float64(e.Hi/l.FileRate.Value)/3-1) > 0.01 {
		t.Errorf("polls cannot tell it: %+v, of files %+v", e, l.FileRate)
	}
}

// Metadata weigh where objects are small, and are nothing bad; the same share of
// large objects is.
func TestMetadataOfSmallObjects(t *testing.T) {
	for size, rule := range map[int64]string{1000: "small-objects", 10_000_000: "more-than-asked"} {
		bytes := 3.2 * float64(size) * 100
		w := &watch{start: []float64{1, 300}, end: []float64{2, 301}, values: map[string][]float64{system.ReadAbsolute: {0, bytes}}}
		l := acceptedLoad(100, size, w)
		l.coding = coding{0, 1, 2}
		l.stored()
		l.efficient()
		found := moreThanAsked(&Report{Loads: []LoadTest{*l}})
		if len(found) != 1 || found[0].Rule != rule || (found[0].Tone == Neutral) != (size == 1000) {
			t.Errorf("objects of %d B: %+v", size, found)
		}
	}
}

// Money is the whole node's where files are a bucket's: with data in its
// contracts when the first poll looked, an empty bucket has not cost what they did.
func TestMoneyBeforeAnEmptyBucket(t *testing.T) {
	for held, want := range map[float64]bool{0: true, 2.5e9: false} {
		w := &watch{start: []float64{1, 200}, end: []float64{2, 201}, values: map[string][]float64{
			system.ReadFiles: {0, 20}, system.ReadAbsolute: {0, 20 * sectors}, system.ReadContractBytes: {held, held + 20*sectors}}}
		l := acceptedLoad(20, 1, w)
		if got := l.unpaid(); got != want || !l.fresh() {
			t.Errorf("%g bytes in contracts: unpaid %v, fresh %v", held, got, l.fresh())
		}
	}
	// Contracts that were over before cost nothing of ours.
	past := &watch{start: []float64{1, 200}, end: []float64{2, 201}, values: map[string][]float64{
		system.ReadFiles: {0, 20}, system.ReadContractBytes: {0, 20 * sectors}, system.ReadEnded: {2.4, 2.4}}}
	if acceptedLoad(20, 1, past).unpaid() {
		t.Error("2.4 coins of contracts that had ended are ours")
	}
	// A poll after our first put sees our own data.
	w := &watch{start: []float64{110, 200}, end: []float64{111, 201}, values: map[string][]float64{
		system.ReadFiles: {12, 20}, system.ReadAbsolute: {12 * sectors, 20 * sectors}, system.ReadContractBytes: {12 * sectors, 20 * sectors}}}
	if l := acceptedLoad(20, 1, w); !l.unpaid() {
		t.Error("all data are ours")
	}
}

// A system that is only watched is not slower because nobody stores any more.
func TestWatchedBandwidthEndsWithTheLoad(t *testing.T) {
	w := &watch{values: map[string][]float64{}}
	nan, level := math.NaN(), 0.0
	for i := range 40 {
		if i >= 5 && i < 25 {
			level += 1e6
		}
		v := level
		if i == 12 {
			v = nan
		}
		w.start, w.end = append(w.start, float64(i)), append(w.end, float64(i)+0.5)
		w.values[system.ReadFileBytes] = append(w.values[system.ReadFileBytes], v)
		w.values[system.ReadAbsolute] = append(w.values[system.ReadAbsolute], 3*v)
	}
	l := &LoadTest{info: &Cell{}, shelf: &shelf{}, watch: w}
	if from, to := l.storing(); from != w.mid(4) || to != w.mid(24) {
		t.Errorf("something came in from %g to %g, want %g to %g", from, to, w.mid(4), w.mid(24))
	}
	for _, c := range l.courses() {
		if c.unit != "B/s" {
			continue
		}
		if len(c.y) < 10 {
			t.Errorf("%s: %d stretches", c.what, len(c.y))
		}
		for _, y := range c.y {
			if y == 0 {
				t.Errorf("%s has a stretch in which nobody stored", c.what)
			}
		}
	}
	for i := range w.start {
		w.values[system.ReadFileBytes][i], w.values[system.ReadAbsolute][i] = 7, 21
	}
	if from, to := l.storing(); from != 0 || !math.IsInf(to, 1) {
		t.Errorf("nothing moved: %g to %g", from, to)
	}
}

// What was tried in vain at first is in the time that the test stored: of an object
// that was tried again its job tells the latest attempt alone.
func TestFirstPutInVain(t *testing.T) {
	job := func(object int64, attempts int, began, accepted float64) record.Job {
		return record.Job{Object: object, State: record.JobAccepted, Attempts: attempts, Size: 1000, Began: dur(began), Accepted: dur(accepted)}
	}
	jobs := []record.Job{job(0, 2, 70, 75), job(1, 1, 65, 90), job(2, 3, 80, 100)}
	ops := []record.Op{
		{Kind: record.OpPut, Object: 0, Outcome: record.Refused, Start: 10e9, LastByte: 11e9},
		{Kind: record.OpPut, Object: 2, Outcome: record.Error, Start: 5e9, LastByte: 60e9},
		{Kind: record.OpPut, Object: 1, Start: 65e9, LastByte: 90e9},
		{Kind: record.OpPut, Object: 9, Start: 1e9, LastByte: 140e9}, // as long as none may take
	}
	read := 0
	in := &input{plan: planView{Deadline: 60}, jobs: func(int64) iter.Seq2[record.Job, error] { return with(slices.Values(jobs)) },
		ops: func(int64) iter.Seq2[record.Op, error] {
			return func(yield func(record.Op, error) bool) {
				for _, op := range append(ops, make([]record.Op, 1000)...) {
					if read++; !yield(op, nil) {
						return
					}
				}
			}
		}}
	s, err := in.shelved(1, 0, 0)
	must(t, err)
	if s.first != 1 || read != len(ops) {
		t.Errorf("the first put began at %v s, by %d operations; want 1 s and %d", s.first, read, len(ops))
	}
	in.plan.Deadline = 20
	if s, err = in.shelved(1, 0, 0); err != nil || s.first != 5 {
		t.Errorf("%v: the first put began at %v s, want 5", err, s.first)
	}
	in.ops = nil
	if s, err = in.shelved(1, 0, 0); err != nil || s.first != 65 {
		t.Errorf("%v: by the jobs alone it began at %v s, want 65", err, s.first)
	}
}
