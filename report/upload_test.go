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
