package report

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// exports are the forms in which equal reports are equal bytes.
var exports = map[string]func(*Report, io.Writer) error{"html": (*Report).WriteHTML, "json": (*Report).WriteJSON}

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

// A run whose metrics were stored wrong is put right where it recorded what they follow
// from; where it did not, they stay.
func TestRebuildComputesMetricsAgain(t *testing.T) {
	for _, facts := range []bool{true, false} {
		dir, _ := synthetic.Run{Blocks: 2, Change: func(_ experiment.Cell, trial *record.Trial) {
			trial.Metrics["throughput"] *= 2
			if facts {
				trial.Details = scenario.Details(scenario.Load{Seconds: trial.Seconds}, scenario.Usage{}, nil, false)
			}
		}}.Write(t)
		run, err := record.Open(dir)
		must(t, err)
		defer run.Close()
		stored, err := Build(run)
		must(t, err)
		again, err := Rebuild(run)
		must(t, err)
		want := 1.0
		if facts {
			want = 0.5
		}
		for i, trial := range again.Trials {
			if got, was := trial.Metrics["throughput"], stored.Trials[i].Metrics["throughput"]; math.Abs(got/was-want) > 1e-9 {
				t.Errorf("facts recorded %v, trial %d: throughput %v, stored is %v", facts, trial.ID, got, was)
			}
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

// Days may lie between the trials of a run that was interrupted.
func TestARunThatWasResumedSaysSo(t *testing.T) {
	dir, run := synthetic.Run{File: fmt.Sprintf(smallFile, "nginx", 2), Blocks: 2, Open: true}.Write(t)
	must(t, run.Event(record.Event{At: time.Date(2026, 3, 4, 5, 6, 0, 0, time.UTC), Kind: "phase", What: "run resumed"}))
	must(t, run.Event(record.Event{At: time.Date(2026, 3, 4, 6, 6, 0, 0, time.UTC), Kind: "phase", What: "run ends"}))
	must(t, run.Close())
	r := buildDir(t, dir)
	if said := fmt.Sprint(r.Notes); !strings.Contains(said, "resumed 1 time, the last time at 2026-03-04 05:06 UTC") {
		t.Error(said)
	}
	c := &RunComparison{base: sharedReport(t), news: []*Report{r}}
	c.differences()
	if said := fmt.Sprint(c.Differs); !strings.Contains(said, "{plan interrupted and resumed never [1 time]}") {
		t.Error(said)
	}
	if said := fmt.Sprint(sharedReport(t).Notes); strings.Contains(said, "resumed") {
		t.Error(said)
	}
}
