package upload

import (
	"flag"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/facts"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

var update = flag.Bool("update", false, "write testdata/rows/*.txt anew")

// unpack opens a committed run.
func unpack(t *testing.T, name string) *record.Reader {
	t.Helper()
	r, err := record.Open(facts.Unpack(t, name))
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

func result(t *testing.T, name string) *analysis.Result {
	t.Helper()
	v := Scenario{}.View()
	if name == "collect" {
		v = Collect{}.View()
	}
	run := unpack(t, name)
	plan, err := analysis.ReadPlan(run)
	must(t, err)
	f, err := analysis.Load(run, plan, v, nil)
	must(t, err)
	r, err := analysis.Analyse(f)
	must(t, err)
	return r
}

// TestRows compares the numbers of committed load tests, of whole trials and of entities, with
// the recorded ones. Accept a change with -update, and explain it in the commit.
func TestRows(t *testing.T) {
	for _, name := range []string{"upload", "upload-killed", "upload-leak", "collect"} {
		var lines []string
		for _, row := range result(t, name).Frame.Rows {
			lines = append(lines, strings.TrimRight(fmt.Sprintf("%s %s %.6g %s", row.Metric, row.Entity, row.Value,
				row.Exact), " "))
		}
		slices.Sort(lines)
		got, path := strings.Join(lines, "\n")+"\n", filepath.Join("testdata", "rows", name+".txt")
		if *update {
			must(t, os.WriteFile(path, []byte(got), 0o644))
			continue
		}
		want, err := os.ReadFile(path)
		must(t, err)
		had := strings.Split(strings.TrimSuffix(string(want), "\n"), "\n")
		for _, line := range lines {
			if !slices.Contains(had, line) {
				t.Errorf("%s: new: %s", path, line)
			}
		}
		for _, line := range had {
			if !slices.Contains(lines, line) {
				t.Errorf("%s: gone: %s", path, line)
			}
		}
	}
}

// The amounts by purpose, including the unexplained part, add up exactly to the money used, and
// together with the unspent part to the money spent.
func TestPurposesAddUp(t *testing.T) {
	for _, name := range []string{"upload", "upload-killed", "upload-leak"} {
		total, purposes := map[string]*big.Rat{}, new(big.Rat)
		for _, row := range result(t, name).Frame.Rows {
			if !slices.Contains([]string{"money", "money_used", "money_unspent", "money_spent"}, row.Metric) {
				continue
			}
			v, ok := new(big.Rat).SetString(row.Exact)
			if !ok {
				t.Fatalf("%s: %s %s has no exact amount: %q", name, row.Metric, row.Entity, row.Exact)
			}
			if row.Metric != "money" {
				total[row.Metric] = v
			} else if row.Entity != system.ReadUnspent {
				purposes.Add(purposes, v)
			}
		}
		used, all := total["money_used"], new(big.Rat).Add(total["money_used"], total["money_unspent"])
		if used.Sign() <= 0 || purposes.Cmp(used) != 0 || all.Cmp(total["money_spent"]) != 0 {
			t.Errorf("%s: used %s, by purpose %s; spent %s, used and unspent %s", name, used.FloatString(24),
				purposes.FloatString(24), total["money_spent"].FloatString(24), all.FloatString(24))
		}
	}
}

// A trial without recorded metrics has each number once.
func TestNumbersOfAnUnfinishedTrial(t *testing.T) {
	for _, name := range []string{"upload", "collect"} {
		run := unpack(t, name)
		trial := *result(t, name).Frame.Trials[0]
		trial.Metrics = nil
		all, err := read(&trial, run)
		must(t, err)
		values := map[key]float64{}
		for _, row := range all.Rows {
			k := key{row.Metric, row.Entity}
			if _, twice := values[k]; twice {
				t.Errorf("%s: %s is there twice", name, k)
			}
			values[k] = row.Value
		}
		// Bytes in buffers count in neither.
		size := values[key{"stored_bytes", ""}] / values[key{"files", ""}]
		each, efficiency := values[key{"absolute_per_file", ""}], values[key{"storage_efficiency", ""}]
		if !(math.Abs(each*efficiency-size) < 0.02*size) {
			t.Errorf("%s: absolute_per_file is %v, efficiency %v, an object %v", name, each, efficiency, size)
		}
	}
}

func TestCodingOfIdentities(t *testing.T) {
	for _, c := range []struct {
		said map[string]string
		want coding
	}{
		{map[string]string{"redundancy": "10 data + 20 parity pieces", "sector": "4096"}, coding{4096, 10, 30}},
		{map[string]string{"redundancy": "2 of 10 shards", "sector": "7"}, coding{7, 2, 10}},
		{map[string]string{"shares": "3 of 10, on 7 different nodes"}, coding{0, 3, 10}},
		{map[string]string{"redundancy": "three of ten", "sector": "7"}, coding{}},
		{nil, coding{}},
	} {
		if got := codingOf(c.said); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.said, got, c.want)
		}
	}
}

// The series of money ends at the money used, including money used before the first poll.
func TestMoneyOverTime(t *testing.T) {
	for _, c := range []struct{ used, first, last float64 }{{510, 500, 510}, {10, 0, 10}, {nan, 0, 10}} {
		l := &loadTest{readings: &readings{values: map[string]series{
			moneyUsed: {{Start: 0, Value: 0}, {Start: 120, Value: 10}}}}, spending: c.used}
		if got := l.usedByPoll().values(); got[0] != c.first || got[1] != c.last {
			t.Errorf("%v used: %v", c.used, got)
		}
	}
}

// Ten objects are accepted; four of them are in the client's buffers at the last poll and take no
// room on the servers. The efficiency of a finished test does not include these.
func TestBufferedObjectsTookNothing(t *testing.T) {
	const size = 1000
	jobs := make([]record.Job, 10)
	for i := range jobs {
		jobs[i] = record.Job{Object: int64(i), Size: size, State: record.JobAccepted, Attempts: 1, Began: time.Second,
			Accepted: 2 * time.Second}
	}
	poll := func(at time.Duration, absolute, file, buffered float64) record.Poll {
		return record.Poll{Start: at, End: at + time.Millisecond,
			Readings: []record.Reading{{Name: system.ReadAbsolute, Value: absolute},
				{Name: system.ReadFileBytes, Value: file}, {Name: "buffered_bytes", Value: buffered}}}
	}
	for _, before := range []float64{0, 5 * size} { // bytes stored by others
		in := newLedger().Recorded()
		in.Cell, in.Jobs = uploadCell(10, size), slices.Values(jobs)
		in.Polls = slices.Values([]record.Poll{
			poll(0, 3*before, before, 0), poll(time.Minute, 3*(before+6*size), before+10*size, 4*size)})
		m := Scenario{}.Measure(in)
		for key, want := range map[string]float64{"absolute_bytes": 18 * size, "absolute_per_file": 3 * size,
			"expansion": 3, "storage_efficiency": 1. / 3} {
			if math.Abs(m[key]-want) > 1e-9*want {
				t.Errorf("%v bytes before: %s is %v, want %v", before, key, m[key], want)
			}
		}
	}
}
