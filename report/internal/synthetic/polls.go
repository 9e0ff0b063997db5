package synthetic

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// pollCatalog() is what a collecting experiment of these tests may name.
func pollCatalog() experiment.Catalog {
	return experiment.Catalog{
		{Name: "siad", Modes: []string{"attach"}, Summary: "Sia"},
		{Name: "kubo", Modes: []string{"attach"}, Summary: "IPFS"},
	}
}

// Polled makes a run that polls one system; its trial is left running.
func Polled(t testing.TB, use string, epoch time.Time) (dir string, run *record.Run, w *record.TrialWriter) {
	t.Helper()
	e, err := experiment.Parse("collect.yaml", []byte(fmt.Sprintf("scenario: collect\nsystems: [{use: %s, name: ours, mode: attach}]\ncollect: {every: 1m}\n", use)), nil, pollCatalog())
	must(t, err)
	plan, err := e.Plan()
	must(t, err)
	raw, err := plan.Marshal()
	must(t, err)
	dir = filepath.Join(t.TempDir(), "run")
	run, err = record.Create(dir, raw, map[string]string{"plimsoll": "v0.0.0-test"}, nil)
	must(t, err)
	t.Cleanup(func() { run.Close() })
	w, err = run.Begin(plan.Cells[0].ID, 0, false, epoch)
	must(t, err)
	return dir, run, w
}

// SiaPoll is one of a siad with two files; in the third minute /renter/files
// answers with a page, in the fourth the wallet tells nonsense.
func SiaPoll(i int) record.Poll {
	at := time.Duration(i) * time.Minute
	p := record.Poll{Seq: int64(i), Intended: at, Start: at, End: at + 700*time.Millisecond}
	end := at
	call := func(name string, took time.Duration, reason string) {
		p.Calls = append(p.Calls, record.PollCall{Name: name, Start: end, End: end + took, Error: reason})
		end += took
	}
	number := func(name string, v float64) { p.Readings = append(p.Readings, record.Reading{Name: name, Value: v}) }
	money := func(name, coins string) {
		var v float64
		fmt.Sscan(coins, &v)
		exact := coins + strings.Repeat("0", 24)
		if v == 0 {
			exact = "0"
		}
		p.Readings = append(p.Readings, record.Reading{Name: name, Value: v, Exact: exact})
	}
	call("/renter/contracts", 100*time.Millisecond, "")
	number("contracts", 50)
	number("contract_bytes", 123456789012)
	money("spent", "100")
	money("spent:fees", "10")
	money("spent:storage", "5")
	money("spent:upload", "4")
	money("spent:download", "0")
	money("spent:accounts", "1")
	money("unspent", "80")
	if i == 2 {
		call("/renter/files", 200*time.Millisecond, "HTML instead of JSON: siad: GET /renter/files")
	} else {
		call("/renter/files", 250*time.Millisecond, "")
		number("files", 2)
		number("uploads", 1)
		number("file_bytes", 1048576.4)
		number("absolute_bytes", 9.8e12)
	}
	call("/wallet", 50*time.Millisecond, "")
	if i == 3 {
		p.Readings = append(p.Readings, record.Reading{Name: "balance", Bad: "negative: -5"})
	} else {
		money("balance", "123456")
	}
	money("outgoing", "0")
	money("incoming", "7")
	call("/consensus", 300*time.Millisecond, "")
	number("height", 170000)
	number("temperature", 21)
	return p
}
