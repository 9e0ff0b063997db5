package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// A report's memory grows with trials and seconds, not with operations: half a
// million of them in a trial of a thousand seconds take no more than the
// histograms of its seconds.
func TestMemoryOfALongTrial(t *testing.T) {
	const seconds, perSecond = 1000, 500
	dir, run, _ := synthetic{file: fmt.Sprintf(smallFile, "nginx", 1)}.create(t)
	w, err := run.Begin("c001", 0, false, time.Now())
	must(t, err)
	rng := rand.New(rand.NewPCG(1, 1))
	ops := make([]record.Op, perSecond)
	for s := range seconds {
		for i := range ops {
			start := int64(s)*1e9 + int64(i)*2e6
			first := start + int64(1e6*math.Exp(rng.NormFloat64()))
			ops[i] = record.Op{Kind: record.OpRange, Status: 206, Length: 1000, Bytes: 1000, Intended: start, Start: start, FirstByte: first, LastByte: first + int64(1e6*math.Exp(rng.NormFloat64()))}
		}
		must(t, w.Ops(ops))
	}
	must(t, w.End(record.Trial{Seconds: seconds, Metrics: map[string]float64{"throughput": 5e5}}))
	must(t, run.Close())

	var before, m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	peak, stop, stopped := uint64(0), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	r := buildDir(t, dir)
	close(stop)
	<-stopped
	if grown := int64(peak) - int64(before.HeapInuse); grown > 64<<20 {
		t.Errorf("the report of %d operations took %d MB", seconds*perSecond, grown>>20)
	}
	if f := r.Figures[len(r.Figures)-1]; f.ID != "time" || len(f.Table.Rows) == 0 || len(f.Table.Rows) > maxPoints {
		t.Errorf("the last figure is %s with %d rows", f.ID, len(f.Table.Rows))
	}
}
