package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
)

// timeline is the time figure of a run of one trial with 1000 bytes in each of
// the given seconds.
func timeline(t *testing.T, length float64, at ...int64) (f Figure, drawn bool) {
	t.Helper()
	dir, run, plan := synthetic.Run{File: fmt.Sprintf(smallFile, "nginx", 1)}.Create(t)
	w, err := run.Begin(plan.Cells[0].ID, 0, false, time.Now())
	must(t, err)
	for _, s := range at {
		start := s*1e9 + 1
		must(t, w.Ops([]record.Op{{Kind: record.OpRange, Length: 1000, Bytes: 1000, Intended: start, Start: start, FirstByte: start + 1, LastByte: start + 2}}))
	}
	must(t, w.End(record.Trial{Seconds: length, Metrics: map[string]float64{"throughput": float64(1000*len(at)) / length}}))
	must(t, run.Close())
	for _, f := range buildDir(t, dir).Figures {
		if f.ID == "time" {
			return f, true
		}
	}
	return Figure{}, false
}

// rates are the points of the figure's only line, "from:bytes per second".
func rates(f Figure) string {
	var all []string
	n := len(f.Table.Head)
	for _, row := range f.Table.Rows {
		all = append(all, row[n-3].Raw+":"+row[n-2].Raw)
	}
	return strings.Join(all, " ")
}

// A second without bytes is a point at zero, not a gap to be drawn over; a part
// of a second at the end is no point, since it would look like a fall.
func TestCourseShowsStallsAndNoFallAtTheEnd(t *testing.T) {
	f, _ := timeline(t, 6.2, 0, 1, 4, 6)
	if got, want := rates(f), "0:1000 1:1000 2:0 3:0 4:1000 5:0"; got != want {
		t.Errorf("points %s, want %s", got, want)
	}
}

func TestCourseOfAShortTrialIsLeftOut(t *testing.T) {
	if f, drawn := timeline(t, 2.9, 0, 1, 2); drawn {
		t.Errorf("drawn with %s", rates(f))
	}
	if _, drawn := timeline(t, 3, 0, 1, 2); !drawn {
		t.Error("three seconds are not drawn")
	}
}

// Days are drawn like seconds, with as many points.
func TestCourseOfALongTrial(t *testing.T) {
	const day = 24 * 3600
	f, _ := timeline(t, 2*day+1, 0, 1, day, 2*day)
	if n := len(f.Table.Rows); n > maxPoints || n < maxPoints/2 {
		t.Fatalf("%d points", n)
	}
	var bytes, seconds float64
	values := f.Panels[0].Spec["data"].(spec)["values"].([]spec)
	n := len(f.Table.Head)
	for i, row := range f.Table.Rows {
		var from, rate float64
		fmt.Sscan(row[n-3].Raw, &from)
		fmt.Sscan(row[n-2].Raw, &rate)
		if from != seconds {
			t.Fatalf("point %d begins at %v s, the one before ended at %v s", i, from, seconds)
		}
		width := 2 * (values[i]["x"].(float64) - from)
		bytes += rate * width
		seconds += width
	}
	if seconds != 2*day+1 || bytes < 3999 || bytes > 4001 {
		t.Errorf("%v s with %v bytes", seconds, bytes)
	}
}
