package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/plimsoll-project/plimsoll/analysis"
)

func TestCSVHasOneLinePerTrial(t *testing.T) {
	_, r := retrieved(t)
	var b bytes.Buffer
	must(t, CSV(r, &b))
	rows, err := csv.NewReader(&b).ReadAll()
	must(t, err)
	if len(rows) != len(r.Frame.Trials)+1 {
		t.Fatalf("%d lines for %d trials", len(rows), len(r.Frame.Trials))
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	for _, name := range []string{"trial", "system", "valid", "invalid", "retrieve.concurrency", "link.rate",
		"throughput", "ops_ok", "ops_in_flight"} {
		if _, ok := at[name]; !ok {
			t.Errorf("no column %s in %v", name, rows[0])
		}
	}
	valid := 0
	for _, row := range rows[1:] {
		if row[at["valid"]] == "true" {
			valid++
			if row[at["invalid"]] != "" || row[at["warmup"]] == "true" {
				t.Errorf("a valid trial says %v", row)
			}
		}
	}
	if valid != r.Run.Valid {
		t.Errorf("%d valid lines, %d valid trials", valid, r.Run.Valid)
	}
	if got := rows[1][at["link.rate"]]; got != "1e+08" && got != "1e+09" {
		t.Errorf("link.rate %q is not in bit/s", got)
	}
}

func TestParquetHasOneRowPerTrial(t *testing.T) {
	_, r := retrieved(t)
	var b bytes.Buffer
	must(t, Parquet(r, &b))
	f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	must(t, err)
	type row struct {
		Trial      int64    `parquet:"trial"`
		System     string   `parquet:"system"`
		Valid      bool     `parquet:"valid"`
		Throughput *float64 `parquet:"throughput,optional"`
		OK         int64    `parquet:"ops_ok"`
	}
	rows, err := parquet.Read[row](bytes.NewReader(b.Bytes()), f.Size())
	must(t, err)
	if len(rows) != len(r.Frame.Trials) {
		t.Fatalf("%d rows, %d trials", len(rows), len(r.Frame.Trials))
	}
	for i, got := range rows {
		want := r.Frame.Trials[i]
		if got.Trial != want.ID || got.System != want.Info.System || got.Valid != want.Valid() ||
			got.OK != want.Outcomes["ok"] || got.Throughput == nil || *got.Throughput != want.Metrics["throughput"] {
			t.Fatalf("row %d is %+v, the trial %+v", i, got, want)
		}
	}
}

// DuckDB reads the file: what is 0 is 0, what is missing is null, and the averages
// are those of the report.
func TestParquetKeepsZeros(t *testing.T) {
	python := duckdb(t)
	_, r := retrieved(t)
	metrics := []string{"success_rate", "throughput"}
	want := [][]*float64{{}, {}, {}}
	for i, trial := range r.Frame.Trials {
		trial.Info = new(*trial.Info)
		trial.Info.Factors = slices.Clone(trial.Info.Factors)
		at := slices.IndexFunc(trial.Info.Factors, func(f analysis.Factor) bool { return f.Path == "link.rate" })
		rate := &trial.Info.Factors[at]
		switch i % 3 {
		case 0:
			rate.Number, trial.Metrics = 0, map[string]float64{metrics[0]: 0, metrics[1]: 0}
		case 1:
			rate.Number, trial.Metrics = math.NaN(), nil
		}
		for c, key := range metrics {
			if v, ok := trial.Metrics[key]; ok {
				want[c] = append(want[c], &v)
			} else {
				want[c] = append(want[c], nil)
			}
		}
		want[2] = append(want[2], &rate.Number)
		if i%3 == 1 {
			want[2][i] = nil
		}
	}
	file := filepath.Join(t.TempDir(), "trials.parquet")
	writeFile(t, file, func(w io.Writer) error { return Parquet(r, w) })
	out, err := exec.CommandContext(t.Context(), python, "-c", `import duckdb, json, sys
columns = 'success_rate, throughput, "link.rate"'
rows = duckdb.execute("SELECT " + columns + " FROM read_parquet(?) ORDER BY trial", [sys.argv[1]]).fetchall()
json.dump(list(zip(*rows)), sys.stdout)`, file).Output()
	must(t, err)
	var got [][]*float64
	must(t, json.Unmarshal(out, &got))
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("DuckDB reads %s", out)
	}
}

// duckdb is a Python that has DuckDB, from scripts/test-deps.sh; the test skips
// without it unless PLIMSOLL_REQUIRE asks for it.
func duckdb(t *testing.T) string {
	t.Helper()
	python, err := filepath.Abs("../../.tools/duckdb/bin/python")
	must(t, err)
	if _, err := os.Stat(python); err != nil {
		if slices.Contains(strings.Split(os.Getenv("PLIMSOLL_REQUIRE"), ","), "duckdb") {
			t.Fatal(err)
		}
		t.Skip("DuckDB is not installed (scripts/test-deps.sh): Parquet is not read back by another reader")
	}
	return python
}

func TestOpsAreStreamedWhole(t *testing.T) {
	run, r := retrieved(t)
	want := int64(0)
	for _, trial := range r.Frame.Trials {
		for _, n := range trial.Outcomes {
			want += n
		}
	}
	var c, p bytes.Buffer
	must(t, OperationsCSV(run, &c))
	if got := int64(bytes.Count(c.Bytes(), []byte("\n"))) - 1; got != want {
		t.Errorf("CSV: %d operations of %d", got, want)
	}
	must(t, OperationsParquet(run, &p))
	rows, err := parquet.Read[OpRow](bytes.NewReader(p.Bytes()), int64(p.Len()))
	must(t, err)
	if int64(len(rows)) != want {
		t.Errorf("Parquet: %d operations of %d", len(rows), want)
	}
	failed := 0
	for _, op := range rows {
		if op.Outcome == "error" {
			failed++
			if op.Class != "status 500" || op.Status != 500 || op.FirstByte != 0 {
				t.Fatalf("a failed operation: %+v", op)
			}
		}
	}
	if failed == 0 {
		t.Error("no failed operation in the export")
	}
}

// What reports do not state of a cell is not exported for benchstat: a metric of which a trial is censored, or one
// that this trial does not support.
func TestBenchfmtHasWhatReportsHave(t *testing.T) {
	_, r := retrieved(t)
	values := func() map[string]int {
		var b strings.Builder
		must(t, Benchfmt(r, &b))
		n := map[string]int{}
		for line := range strings.Lines(b.String()) {
			for _, unit := range []string{"throughput-B/sec", "success-rate-frac"} {
				if strings.HasPrefix(line, "Benchmark") && strings.Contains(line, unit) {
					n[unit]++
				}
			}
		}
		return n
	}
	before, c := values(), r.Cells[0]
	trials := len(r.Frame.Of(c, "throughput"))
	r.Frame.Of(c, "throughput")[0].Censored = true
	r.Frame.Of(c, "success_rate")[0].Trial = &analysis.Trial{}
	after := values()
	if trials < 2 || before["throughput-B/sec"]-after["throughput-B/sec"] != trials ||
		before["success-rate-frac"]-after["success-rate-frac"] != 1 {
		t.Errorf("%v, then %v, of %d trials of the cell", before, after, trials)
	}
}
