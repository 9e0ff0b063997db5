package report

import (
	"bytes"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"golang.org/x/perf/benchfmt"
)

// exports are the forms in which equal reports are equal bytes.
var exports = map[string]func(*Report, io.Writer) error{"html": (*Report).WriteHTML, "json": (*Report).WriteJSON, "csv": (*Report).WriteCSV, "benchfmt": (*Report).WriteBenchfmt}

func TestBuildIsAPureFunctionOfTheDirectory(t *testing.T) {
	for name, write := range exports {
		var a, b bytes.Buffer
		must(t, write(sharedReport(t), &a))
		must(t, write(sharedReport(t), &b))
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%s differs between two builds of one directory", name)
		}
	}
}

// Memory must not grow with the number of operations, so a report may not need
// them: without its operations the run gives the same report.
func TestBuildReadsNoOperations(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	must(t, os.CopyFS(dir, os.DirFS(shared(t))))
	db, err := sql.Open("sqlite", filepath.Join(dir, "run.db"))
	must(t, err)
	if res, err := db.Exec(`DELETE FROM ops`); err != nil {
		t.Fatal(err)
	} else if n, _ := res.RowsAffected(); n == 0 {
		t.Fatal("there were no operations to delete")
	}
	must(t, db.Close())
	var with, without bytes.Buffer
	must(t, sharedReport(t).WriteHTML(&with))
	must(t, buildDir(t, dir).WriteHTML(&without))
	if !bytes.Equal(with.Bytes(), without.Bytes()) {
		t.Error("the page changed when the operations were gone")
	}
}

func TestCSVHasOneLinePerTrial(t *testing.T) {
	r := sharedReport(t)
	var b bytes.Buffer
	must(t, r.WriteCSV(&b))
	rows, err := csv.NewReader(&b).ReadAll()
	must(t, err)
	if len(rows) != len(r.Trials)+1 || len(r.Trials) != 18*6 {
		t.Fatalf("%d lines for %d trials", len(rows), len(r.Trials))
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	for _, name := range []string{"trial", "system", "valid", "invalid", "retrieve.concurrency", "link.rate", "throughput", "ops_ok", "ops_in_flight"} {
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
	if valid != r.Run.Valid || valid != 88 {
		t.Errorf("%d valid lines, %d valid trials", valid, r.Run.Valid)
	}
	if got := rows[1][at["link.rate"]]; got != "1e+08" && got != "1e+09" {
		t.Errorf("link.rate %q is not in bit/s", got)
	}
}

func TestParquetHasOneRowPerTrial(t *testing.T) {
	r := sharedReport(t)
	var b bytes.Buffer
	must(t, r.WriteParquet(&b))
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
	if len(rows) != len(r.Trials) {
		t.Fatalf("%d rows, %d trials", len(rows), len(r.Trials))
	}
	for i, got := range rows {
		want := r.Trials[i]
		if got.Trial != want.ID || got.System != want.Info.System || got.Valid != want.Valid() || got.OK != want.Outcomes["ok"] || got.Throughput == nil || *got.Throughput != want.Metrics["throughput"] {
			t.Fatalf("row %d is %+v, the trial %+v", i, got, want)
		}
	}
}

func TestOpsAreStreamedWhole(t *testing.T) {
	run := openShared(t)
	want := int64(0)
	for _, trial := range sharedReport(t).Trials {
		for _, n := range trial.Outcomes {
			want += n
		}
	}
	var c, p bytes.Buffer
	must(t, WriteOpsCSV(run, &c))
	if got := int64(bytes.Count(c.Bytes(), []byte("\n"))) - 1; got != want {
		t.Errorf("CSV: %d operations of %d", got, want)
	}
	must(t, WriteOpsParquet(run, &p))
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

// What benchstat reads: one line per valid trial, with names it can split.
func TestBenchfmtIsReadByItsOwnReader(t *testing.T) {
	r := sharedReport(t)
	var b bytes.Buffer
	must(t, r.WriteBenchfmt(&b))
	in := benchfmt.NewReader(&b, "trials.txt")
	results, better := 0, map[string]bool{}
	for in.Scan() {
		switch rec := in.Result().(type) {
		case *benchfmt.SyntaxError:
			t.Fatal(rec)
		case *benchfmt.UnitMetadata:
			better[rec.Unit] = true
		case *benchfmt.Result:
			results++
			base, parts := rec.Name.Parts()
			if string(base) != "Retrieve" || len(parts) != 3 || !strings.HasPrefix(string(parts[2]), "/system=") {
				t.Fatalf("name %q splits into %q %q", rec.Name, base, parts)
			}
			if v, ok := rec.Value("throughput-B/sec"); !ok || v <= 0 {
				t.Fatalf("throughput of %s: %v %v in %v", rec.Name, v, ok, rec.Values)
			}
		}
	}
	must(t, in.Err())
	if results != r.Run.Valid {
		t.Errorf("%d results, %d valid trials", results, r.Run.Valid)
	}
	if !better["throughput-B/sec"] || !better["ttfb-p50-sec"] {
		t.Errorf("units with a direction: %v", better)
	}
}

// The schema in docs/results.md is the one that WriteJSON writes.
func TestSummaryIsAsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/results.md")
	must(t, err)
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9_.\\[\\]*]+)` \\|").FindAllStringSubmatch(string(doc), -1) {
		documented[m[1]] = true
	}
	written := map[string]bool{}
	paths(reflect.TypeFor[Report](), "", written)
	for p := range written {
		if !documented[p] {
			t.Errorf("docs/results.md does not describe %s", p)
		}
	}
	for p := range documented {
		if !written[p] {
			t.Errorf("docs/results.md describes %s, which is not written", p)
		}
	}
	var b bytes.Buffer
	must(t, sharedReport(t).WriteJSON(&b))
	var back Report
	d := json.NewDecoder(&b)
	d.DisallowUnknownFields()
	must(t, d.Decode(&back))
	if back.Format != Format || len(back.Cells) != 18 || back.Run.Valid != 88 {
		t.Errorf("read back: %+v", back.Run)
	}
}

// paths lists the JSON paths of a type: "cells[].metrics.*.median".
func paths(t reflect.Type, at string, into map[string]bool) {
	switch t.Kind() {
	case reflect.Pointer:
		paths(t.Elem(), at, into)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Struct {
			paths(t.Elem(), at+"[]", into)
		} else {
			into[at] = true
		}
	case reflect.Map:
		if t.Elem().Kind() == reflect.Struct {
			paths(t.Elem(), at+".*", into)
		} else {
			into[at] = true
		}
	case reflect.Struct:
		if t.PkgPath() == "time" {
			into[at] = true
			return
		}
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !f.IsExported() || name == "-" {
				continue
			}
			p := name
			if at != "" {
				p = at + "." + name
			}
			paths(f.Type, p, into)
		}
	default:
		into[at] = true
	}
}
