package report

import (
	"os"
	"strings"
	"testing"
)

func TestSmoke(t *testing.T) {
	s := plainLoad(1)
	s.latency = func(files, _, _ float64) float64 { return 3 + files/13 }
	s.leakAt, s.leak = 20, 33
	s.renewAt, s.renewLoss = 30, 69.3
	s.downtime = [2]float64{36, 39}
	r := s.report(t)
	t.Log(text(t, r, 100))
	must(t, os.WriteFile("/tmp/report-upload.html", page(t, r), 0o644))
	for _, l := range strings.Split(text(t, r, 100), "\n") {
		if len([]rune(l)) > 100 {
			t.Errorf("a line is wider than 100: %q", l)
		}
	}
}

func TestLoadOfARunDirectory(t *testing.T) {
	s := plainLoad(2)
	s.hours, s.objects = 8, 600
	r := buildDir(t, s.write(t))
	if len(r.Loads) != 1 || r.Loads[0].Files != 600 || r.Loads[0].Polls.N != 480 {
		t.Fatalf("loads %+v", r.Loads)
	}
	b, m := r.Loads[0], s.report(t).Loads[0]
	if b.Money.Spent != m.Money.Spent || b.Efficiency.Value != m.Efficiency.Value || b.LatencyLast != m.LatencyLast || len(b.Growth) != len(m.Growth) {
		t.Errorf("the run directory gives\n%+v\nits contents give\n%+v", b, m)
	}
}
