package export

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/facts"
)

// Stock benchstat, on what is exported of two runs, says the same as their
// comparison: medians, change and p.
func TestBenchstatAgreesWithCompare(t *testing.T) {
	if testing.Short() {
		t.Skip("builds benchstat")
	}
	dir := t.TempDir()
	exe := filepath.Join(dir, "benchstat")
	if out, err := exec.Command("go", "build", "-o", exe,
		"golang.org/x/perf/cmd/benchstat").CombinedOutput(); err != nil {
		t.Skipf("benchstat cannot be built here: %v\n%s", err, out)
	}
	var runs []*analysis.Result
	var dirs []string
	files := []string{"-format", "csv"}
	for i, name := range []string{"retrieve", "retrieve-slower"} {
		d := facts.Unpack(t, name)
		_, rep := opened(t, d)
		file := filepath.Join(dir, fmt.Sprint("run", i))
		writeFile(t, file, func(w io.Writer) error { return Benchfmt(rep, w) })
		runs, dirs, files = append(runs, rep), append(dirs, d), append(files, file)
	}
	c, err := analysis.CompareRuns(runs[0], runs[1:], dirs, analysis.CompareOptions{})
	must(t, err)
	out, err := exec.Command(exe, files...).Output()
	must(t, err)
	lines := csv.NewReader(bytes.NewReader(out))
	lines.FieldsPerRecord = -1
	rows, err := lines.ReadAll()
	must(t, err)
	said, unit := map[string][]string{}, "" // what benchstat says of throughputs, by cell
	for _, row := range rows {
		if len(row) > 1 && row[0] == "" && !strings.Contains(row[1], "run") {
			unit = row[1]
		}
		if len(row) >= 7 && unit == "throughput-B/sec" {
			said[row[0]] = row
		}
	}
	differ := false
	for _, cell := range c.Cells {
		var concurrency, rate, unit string
		_, err := fmt.Sscanf(cell.Where, "concurrency %s rate %s %1s", &concurrency, &rate, &unit)
		must(t, err)
		name := fmt.Sprintf("Retrieve/rate=%s%sbit/concurrency=%s/system=%s", rate, unit,
			strings.TrimSuffix(concurrency, ","), cell.System)
		row := said[name]
		if row == nil {
			t.Fatalf("no %s in\n%s", name, out)
		}
		v := cell.Metrics["throughput"]
		base, _ := strconv.ParseFloat(row[1], 64)
		after, _ := strconv.ParseFloat(row[3], 64)
		if math.Abs(base/float64(v.Base.Median)-1) > 1e-5 || math.Abs(after/float64(v.New[0].Median)-1) > 1e-5 {
			t.Errorf("%s: benchstat has %v and %v, compare %v and %v", name, base, after, v.Base.Median, v.New[0].Median)
		}
		q := v.New[0].Ratio
		n := fmt.Sprint(v.Base.N)
		if v.New[0].N != v.Base.N {
			n += fmt.Sprint("+", v.New[0].N)
		}
		if want := fmt.Sprintf("p=%0.3f n=%s", float64(q.P), n); row[6] != want {
			t.Errorf("%s: benchstat says %q, compare %s", name, row[6], want)
		}
		want := fmt.Sprintf("%+.2f%%", 100*(float64(q.Value)-1))
		if row[5] != want && (row[5] != "~" || q.Significant) {
			t.Errorf("%s: benchstat says %q, compare %s: %+v", name, row[5], want, q)
		}
		differ = differ || q.Significant
	}
	if !differ {
		t.Errorf("no cell differs in\n%s", out)
	}
}
