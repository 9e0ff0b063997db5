package siad

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/replay"
)

// asked makes one of a node's calls.
func asked(t *testing.T, n *node, name string) (map[string]system.Reading, error) {
	t.Helper()
	for _, c := range n.Calls() {
		if c.Name != name {
			continue
		}
		all, err := c.Read(t.Context())
		out := map[string]system.Reading{}
		for _, r := range all {
			if _, twice := out[r.Name]; twice {
				t.Errorf("%s tells %s twice", name, r.Name)
			}
			out[r.Name] = r
		}
		return out, err
	}
	t.Fatalf("there is no call %s", name)
	return nil, nil
}

func wantAmounts(t *testing.T, got map[string]system.Reading, want map[string]string) {
	t.Helper()
	for name, amount := range want {
		if r := got[name]; r.Amount == nil || r.Amount.String() != amount || r.Bad != "" {
			t.Errorf("%s: %+v, want %s", name, r, amount)
		}
	}
}

func wantValues(t *testing.T, got map[string]system.Reading, want map[string]float64) {
	t.Helper()
	for name, value := range want {
		if r, ok := got[name]; !ok || r.Bad != "" || math.Abs(r.Value-value) > 1e-9*value {
			t.Errorf("%s: %+v (%v), want %g", name, r, ok, value)
		}
	}
}

// polled returns exchanges in the form of a poll: recordings request the contracts in use, polls
// also request those that are over.
func polled(steps []replay.Exchange) []replay.Exchange {
	for i := range steps {
		if steps[i].Path == "/renter/contracts" {
			steps[i].Query = allContracts()
		}
	}
	return steps
}

// TestMonitor makes all calls of a poll against a recording.
func TestMonitor(t *testing.T) {
	rec := replay.Load(t, "testdata/reports.jsonl")
	steps := replay.Chain(
		polled(only(t, rec, "report", "/renter/contracts")),
		replay.Steps(replay.Load(t, "testdata/files.jsonl"), "renter/files"),
		only(t, rec, "report", "/wallet"), only(t, rec, "report", "/renter"), only(t, rec, "report", "/renter/prices"),
		only(t, rec, "report", "/hostdb/active"), only(t, replay.Load(t, "testdata/attach.jsonl"), "report",
			"/consensus"),
		replay.Steps(replay.Load(t, "testdata/monitor.jsonl"), "report"),
	)
	n := attached(t, steps) // in this order
	all := map[string]system.Reading{}
	for _, c := range n.Calls() {
		got, err := asked(t, n, c.Name)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		for name, r := range got {
			if _, twice := all[name]; twice {
				t.Errorf("two calls tell %s", name)
			}
			all[name] = r
		}
	}
	wantAmounts(t, all, map[string]string{
		"spent": "249999999999999999999999999", "spent:fees": "10378029783887984876100000",
		"spent:accounts": "3000000000000000000000000",
		"spent:storage":  "316320426664642215936", "spent:upload": "184498720000000000000", "spent:download": "0",
		"spent:maintenance": "11",
		"balance":           "20317404274320000000000000000001", "outgoing": "0", "incoming": "0",
		"allowance": "5000000000000000000000000000", "price:storage": "179999999998847993338661852",
	})
	wantValues(t, all, map[string]float64{
		"contracts": 3, "files": 3, "uploads": 0, "file_bytes": 1 + 1<<20 + 40<<20, "absolute_bytes": 3*256<<10 +
			3<<20 + 120<<20,
		"redundancy_mean": 3, "redundancy_min": 3, "redundancy_max": 3, "below_redundancy": 0, "unlocked": 1,
		"synced": 1, "peers": 4, "allowance_period": 200,
	})
	if all["height"].Value < 30 || all["hosts"].Value < 1 || all["contract_bytes"].Value != 44040192*2+44302336 {
		t.Errorf("height %v, hosts %v, contract bytes %v", all["height"], all["hosts"], all["contract_bytes"])
	}
	// The costs that siad 1.5.9 reports do not add up once data were sent: here, 0.000078 SC of
	// what left the contracts are in none of the parts.
	parts := new(big.Int).Set(all["unspent"].Amount)
	for name, r := range all {
		if strings.HasPrefix(name, system.ReadSpentPrefix) {
			parts.Add(parts, r.Amount)
		}
	}
	lost := new(big.Int).Sub(all["spent"].Amount, parts)
	if lost.String() != "78065957333232135044" {
		t.Errorf("the parts differ from the total by %s", lost)
	}
}

// TestMonitorOfAnEmptyRenter checks that lists are null, and that there are no prices until hosts
// are known.
func TestMonitorOfAnEmptyRenter(t *testing.T) {
	rec := replay.Load(t, "testdata/attach.jsonl")
	var steps []replay.Exchange
	for _, path := range []string{"/renter/contracts", "/renter/files", "/wallet", "/renter/prices", "/hostdb/active"} {
		steps = append(steps, polled(only(t, rec, wrong, path))...)
	}
	n := attached(t, steps, replay.ByPath())
	for call, want := range map[string]map[string]float64{
		"/renter/contracts": {"contracts": 0, "spent": 0, "unspent": 0, "contract_bytes": 0},
		"/renter/files":     {"files": 0, "uploads": 0, "file_bytes": 0, "absolute_bytes": 0, "below_redundancy": 0},
		"/wallet":           {"balance": 0, "unlocked": 0},
		"/hostdb/active":    {"hosts": 0},
	} {
		got, err := asked(t, n, call)
		if err != nil {
			t.Errorf("%s: %v", call, err)
		}
		wantValues(t, got, want)
		for _, name := range []string{"redundancy_mean", "redundancy_min", "redundancy_max"} {
			if r, told := got[name]; told {
				t.Errorf("redundancy of no file: %+v", r)
			}
		}
	}
	_, err := asked(t, n, "/renter/prices")
	fails(t, "prices before hosts are known", err, nil, "initial hostdb scan")
}

// TestContractsThatAreOver checks that what such contracts had used is still reported, and that
// what they had not used is reported separately, because it comes back.
func TestContractsThatAreOver(t *testing.T) {
	e := replay.Steps(replay.Load(t, "testdata/monitor.jsonl"), "contracts at the end")[0]
	e.Query = allContracts()
	wantValues(t, readings(t, e, e.Answer.Body.Text), map[string]float64{"contracts": 3,
		"contract_bytes": 524288 + 2*44564480, "ended": 0})
	one := func(id string) string {
		return `{"id":"` + id + `","size":7,"totalcost":"100","fees":"10","storagespending":"20","uploadspending":"30","downloadspending":"0","fundaccountspending":"1","renterfunds":"39"}`
	}
	text := `{"contracts":[` + one("a") + `],"activecontracts":[` + one("a") + `],"refreshedcontracts":[` + one("b") + `],"disabledcontracts":[` + one("c") + `],
		"expiredcontracts":[` + one("d") + `],"expiredrefreshedcontracts":[` + one("e") + `]}`
	got := readings(t, e, text)
	wantValues(t, got, map[string]float64{"contracts": 1, "contract_bytes": 7})
	wantAmounts(t, got, map[string]string{"spent": "200", "unspent": "78", "spent:fees": "20",
		"ended": "183", "ended_unspent": "117", "ended:fees": "30", "ended:storage": "60", "ended:upload": "90",
		"ended:accounts": "3"})
	// A part that some contracts do not report has a bad sum; a part that none reports has no
	// reading.
	text = `{"activecontracts":[{"id":"a","size":18446744073709551000,"totalcost":"10"},{"id":"b","totalcost":"1","fees":"1"}]}`
	got = readings(t, e, text)
	if _, has := got["spent:maintenance"]; has || got["spent"].Bad != "" ||
		!strings.Contains(got["spent:fees"].Bad, "1 of 2 contracts") || got["contract_bytes"].Value < 1<<63 {
		t.Errorf("%+v", got)
	}
}

// readings returns the readings of an exchange's call with text as the answer.
func readings(t *testing.T, e replay.Exchange, text string) map[string]system.Reading {
	t.Helper()
	e.Answer.Body = replay.Body{Text: text}
	got, err := asked(t, attached(t, []replay.Exchange{e}), e.Path)
	must(t, err)
	return got
}

// TestRedundancyThatFell checks a file after a host died and each chunk lost a piece with it, beside
// one with pieces beyond those requested.
func TestRedundancyThatFell(t *testing.T) {
	files := replay.Steps(replay.Load(t, "testdata/files.jsonl"), "renter/files")[0]
	killed := replay.Steps(replay.Load(t, "testdata/killed.jsonl"), "poll file mib1")
	var last struct {
		File json.RawMessage `json:"file"`
	}
	must(t, json.Unmarshal([]byte(killed[len(killed)-1].Answer.Body.Text), &last))
	text := fmt.Sprintf(`{"files":[%s,{"siapath":"new","filesize":100,"uploadedbytes":786432,"uploadprogress":50,"redundancy":0,"health":1},
		{"siapath":"more","filesize":10,"uploadedbytes":1048576,"uploadprogress":100,"redundancy":4,"health":0}]}`, last.File)
	wantValues(t, readings(t, files, text), map[string]float64{"files": 3, "uploads": 1, "below_redundancy": 1,
		"redundancy_mean": 3, "redundancy_min": 2, "redundancy_max": 4, "file_bytes": 1<<20 + 50 + 10})
}

// TestAbsurdReadings checks that an underflowed count is decoded, makes its sum so large that the
// collector refuses it, and leaves other readings intact.
func TestAbsurdReadings(t *testing.T) {
	files := replay.Steps(replay.Load(t, "testdata/files.jsonl"), "renter/files")[0]
	got := readings(t, files, `{"other":[1,{"files":[]}],"files":[
		{"siapath":"a","filesize":10,"uploadedbytes":18446744073709551615,"uploadprogress":100,"redundancy":3},
		{"siapath":"b","filesize":20,"uploadedbytes":30,"uploadprogress":100,"redundancy":3}]}`)
	if got["absolute_bytes"].Value < 1<<63 {
		t.Errorf("%+v", got["absolute_bytes"])
	}
	wantValues(t, got, map[string]float64{"files": 2, "uploads": 0, "file_bytes": 30})
}
