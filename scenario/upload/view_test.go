package upload

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/record"
)

const facts = "../../cmd/plimsoll/testdata/facts/"

// unpack makes a run directory of a committed one.
func unpack(t *testing.T, name string) *record.Reader {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	plan, err := os.ReadFile(filepath.Join(facts, name, "plan.json"))
	check(t, err)
	packed, err := os.ReadFile(filepath.Join(facts, name, "run.db.gz"))
	check(t, err)
	z, err := gzip.NewReader(bytes.NewReader(packed))
	check(t, err)
	db, err := io.ReadAll(z)
	check(t, err)
	check(t, os.Mkdir(dir, 0o755))
	check(t, os.WriteFile(filepath.Join(dir, "plan.json"), plan, 0o644))
	check(t, os.WriteFile(filepath.Join(dir, "run.db"), db, 0o644))
	r, err := record.Open(dir)
	check(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func result(t *testing.T, name string) *analysis.Result {
	t.Helper()
	v := View()
	if name == "collect" {
		v = CollectView()
	}
	f, err := analysis.Load(unpack(t, name), v)
	check(t, err)
	r, err := analysis.Analyse(f)
	check(t, err)
	return r
}

// names maps facts of a load test to the rows that carry them now: metric, or metric:entity.
var names = map[string]string{
	".absolute": "absolute", ".bytes": "stored_bytes", ".contracts": "contracts", ".crashes": "crashes",
	".cut_off":  "sessions_killed",
	".downtime": "downtime", ".files": "files", ".seconds": "duration", ".sessions": "sessions",
	".unrecorded":          "attempts_unrecorded",
	".absolute_rate.value": "absolute_bandwidth", ".absolute_rate.lo": "absolute_bandwidth_least",
	".absolute_rate.hi": "absolute_bandwidth_most",
	".file_rate.value":  "computed",
	".accept.value":     "accept_p50", ".durable.value": "durable_p50",
	".efficiency.value.value": "efficiency", ".efficiency.copies": "copies", ".efficiency.highest": "redundancy_highest",
	".efficiency.mean": "redundancy_mean", ".efficiency.line": "efficiency_line", ".efficiency.padding": "padding",
	".efficiency.per_file": "absolute_per_file",
	".objects.accepted":    "files", ".objects.bytes": "stored_bytes", ".objects.durable": "objects_by_state:durable",
	".objects.adopted": "objects_by_state:adopted",
	".objects.retried": "objects_by_state:retried", ".objects.failed": "failed", ".objects.refused": "refused",
	".objects.missing":    "missing",
	".objects.unreadable": "unreadable", ".objects.not_durable": "objects_by_state:not durable in time",
	".objects.late": "objects_by_state:durable late",
	".polls.every":  "poll_every", ".polls.failed": "poll_gaps", ".polls.missed": "polls_missed", ".polls.n": "polls",
	".money.months": "contract_months",
}

// rowNames are names with those of money.
func rowNames() map[string]string {
	names := maps.Clone(names)
	for old, now := range map[string]string{"begun": "wallet_first", "wallet": "wallet_last",
		"per_file": "money_per_file", "per_tb_month": "money_per_tb_month",
		"per_tb_month_with_bandwidth": "money_per_tb_month_all", "spent": "money_spent", "used": "money_used"} {
		names[".money."+old+".exact"], names[".money."+old+".value"], names[".money."+old+".in"] = now, now, now+priced
	}
	for i, kind := range []string{"fees", "storage", "upload", "download", "unspent"} {
		at := fmt.Sprintf(".money.kinds[%d]", i)
		names[at+".share"] = "money_share:" + kind
		names[at+".amount.exact"], names[at+".amount.value"], names[at+".amount.in"] = "money:"+kind, "money:"+kind,
			"money"+priced+":"+kind
	}
	return names
}

// TestFacts holds that the numbers of load tests are those that package report had.
func TestFacts(t *testing.T) {
	names := rowNames()
	for _, name := range []string{"upload", "upload-killed", "upload-leak", "collect"} {
		r := result(t, name)
		rows := map[string]analysis.Row{}
		for _, row := range r.Frame.Rows {
			key := row.Metric
			if row.Entity != "" {
				key += ":" + row.Entity
			}
			rows[key] = row
		}
		text, err := os.ReadFile(facts + name + ".txt")
		check(t, err)
		l, err := load(r.Frame.Trials[0], unpack(t, name))
		check(t, err)
		// The recorded file bandwidth of these runs is made up: it is not the objects'.
		rows["computed"] = analysis.Row{Value: l.fileRate}
		n := 0
		for _, line := range strings.Split(string(text), "\n") {
			path, values, ok := strings.Cut(strings.TrimPrefix(line, "loads[1]"), ": ")
			if !ok || !strings.HasPrefix(line, "loads[1]") {
				continue
			}
			for _, kv := range strings.Fields(values) {
				key, want, _ := strings.Cut(kv, "=")
				now, ok := names[path+"."+key]
				if !ok {
					continue
				}
				row, has := rows[now]
				got := "<nil>"
				switch {
				case has && key == "exact":
					got = row.Exact
				case has:
					got = fmt.Sprintf("%.6g", row.Value)
				}
				if n++; got != want && !(want == "0" && !has) && !(name == "collect" && key == "late") {
					t.Errorf("%s%s.%s = %s, the row %s has %s", name, path, key, want, now, got)
				}
			}
		}
		if n < 60 {
			t.Errorf("%s: only %d facts compared", name, n)
		}
		t.Logf("%s: %d facts", name, n)
	}
}

// TestFindings holds what the committed load tests are said to have found.
func TestFindings(t *testing.T) {
	for name, want := range map[string]struct {
		own  string
		tone analysis.Tone
	}{"upload": {"", analysis.Good}, "upload-killed": {"poll-gaps", analysis.Good}, "upload-leak": {"money-unexplained",
		analysis.Bad}, "collect": {"", analysis.Good}} {
		r := result(t, name)
		var own []string
		for _, f := range r.Findings {
			for _, rule := range rules() {
				if rule.ID == f.Rule {
					own = append(own, f.Rule)
				}
			}
		}
		if got := strings.Join(own, " "); got != want.own || r.Verdict.Tone != want.tone {
			t.Errorf("%s: found %q, verdict %+v", name, got, r.Verdict)
		}
	}
}
