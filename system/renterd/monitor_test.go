package renterd

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/replay"
)

// poll makes calls of a node. It returns the readings and the failed calls.
func poll(t *testing.T, calls ...system.Call) (map[string]system.Reading, map[string]error) {
	t.Helper()
	all, failed := map[string]system.Reading{}, map[string]error{}
	for _, c := range calls {
		readings, err := c.Read(t.Context())
		if err != nil {
			failed[c.Name] = err
		}
		for _, r := range readings {
			if _, twice := all[r.Name]; twice {
				t.Errorf("two calls tell %s", r.Name)
			}
			all[r.Name] = r
		}
	}
	return all, failed
}

// sum adds up the readings whose names have the prefix.
func sum(got map[string]system.Reading, prefix string) (n int, of *big.Int) {
	of = new(big.Int)
	for name, r := range got {
		if strings.HasPrefix(name, prefix) {
			of.Add(of, r.Amount)
			n++
		}
	}
	return n, of
}

// everything returns one recorded poll of the node.
func everything(t *testing.T) []replay.Exchange {
	rec := replay.Load(t, "testdata/attach.jsonl")
	objects := replay.Load(t, "testdata/objects.jsonl")
	hosts := replay.Steps(rec, "hosts: usable only")
	hosts[0].Body.Text = `{"offset":0,"limit":1000,"filterMode":"allowed","usabilityMode":"usable"}`
	hosts[0].Answer = replay.Steps(rec, "hosts with their prices (v2Settings.prices)")[0].Answer
	contracts := replay.Steps(rec, "contracts after: spending")
	contracts[0].Query = allContracts()
	return replay.Chain(
		contracts, replay.Steps(objects, "stats/objects"),
		replay.Steps(objects, "poll slabbuffers until the full one was uploaded"),
		at(t, rec, "state", "/api/bus/wallet"), at(t, rec, "state", "/api/bus/consensus/state"),
		replay.Steps(replay.Load(t, "testdata/monitor.jsonl"), "state"), hosts,
	)
}

func TestMonitor(t *testing.T) {
	got, failed := poll(t, on(t, everything(t)).Calls()...)
	if len(failed) > 0 {
		t.Fatal(failed)
	}
	for name, want := range map[string]float64{
		"contracts": 3, "buffers": 1, "buffered_bytes": 5242881, "synced": 1, "height": 804, "peers": 1,
		"balance": 41_700_000, "immature": 0,
		"price:storage": 1000, "files": 14, "multipart_uploads": 0, "health_min": 1,
	} {
		if r, ok := got[name]; !ok || r.Bad != "" || r.Value < want*(1-1e-6) || r.Value > want*(1+1e-6) {
			t.Errorf("%s: %+v (%v), want %g", name, r, ok, want)
		}
	}
	if r, ok := got[system.ReadUploads]; ok {
		t.Errorf("%+v: the node does not tell how many uploads are under way", r)
	}
	if got["hosts"].Value < 1 || got["absolute_bytes"].Value <= got["file_bytes"].Value ||
		got["uploaded_bytes"].Value <= 0 || got["contract_bytes"].Value <= 0 {
		t.Errorf("%v", got)
	}
	n, parts := sum(got, system.ReadSpentPrefix)
	parts.Add(parts, got["unspent"].Amount)
	if n != 5 || parts.Cmp(got["spent"].Amount) != 0 {
		t.Errorf("%d parts make %v of %v", n, parts, got["spent"].Amount)
	}
}

// TestMonitorFaults checks nulls, absurd values and web pages as answers.
func TestMonitorFaults(t *testing.T) {
	with := func(answers map[string]string) []replay.Exchange {
		steps := everything(t)
		for i := range steps {
			if text, ok := answers[strings.TrimPrefix(steps[i].Path, "/api")]; ok {
				steps[i].Answer = replay.Answer{Status: 200, Body: replay.Body{Text: text}}
			}
		}
		return steps
	}
	got, failed := poll(t, on(t, with(map[string]string{
		"/bus/contracts": "null", "/bus/slabbuffers": "null", "/bus/stats/objects": "null", "/bus/wallet": "null",
		"/bus/syncer/peers": "null", "/bus/hosts": "null", "/bus/consensus/state": "null",
	})).Calls()...)
	if len(failed) > 0 || got["contracts"].Value != 0 || got["buffers"].Value != 0 || got["hosts"].Value != 0 {
		t.Errorf("%v, %v", got, failed)
	}
	for _, name := range []string{"files", "balance", "height", "price:storage"} {
		if r, told := got[name]; told {
			t.Errorf("%s was not told: %+v", name, r)
		}
	}
	got, failed = poll(t, on(t, with(map[string]string{
		"/bus/contracts": `[{"id":"aa","size":18446744073709551615},{"id":"bb","size":1}]`,
		"/bus/wallet":    "<html>login</html>", "/bus/slabbuffers": "[{", "/bus/consensus/state": "[]",
	})).Calls()...)
	if got["contract_bytes"].Value < 1<<63 || got["contracts"].Value != 2 { // the collector refuses it
		t.Errorf("%+v", got["contract_bytes"])
	}
	if len(failed) != 3 || !errors.Is(failed["/bus/wallet"], system.ErrAnswer) || !errors.Is(failed["/bus/slabbuffers"],
		system.ErrAnswer) || !errors.Is(failed["/bus/consensus/state"], system.ErrAnswer) {
		t.Errorf("%v", failed)
	}
}

// renewed is one of the contracts of a renterd v2.9.3 and its replacement, as `filtermode=all`
// reported them after the renewal (with shortened IDs). The contract began with 61.75 SC, had used
// 4.49 SC and 0.2 SC for its price, and held a gigabyte. The new contract had no size yet. The
// third was abandoned before it was on the chain.
const renewed = `[
{"id":"4bbe5783","renewedFrom":"4559d959","size":0,"state":"active","usability":"bad","contractPrice":"200000000000000000000000","initialRenterFunds":"71231229498500395902959616",
 "spending":{"deletions":"0","fundAccount":"0","sectorRoots":"0","uploads":"0"},"renewedTo":"00000000","v2":true},
{"id":"4559d959","renewedFrom":"00000000","size":1073741824,"state":"complete","usability":"bad","contractPrice":"200000000000000000000000","initialRenterFunds":"61750486874757152884654080",
 "spending":{"deletions":"0","fundAccount":"3025254707335947434536960","sectorRoots":"0","uploads":"1466286061888282364477440"},"renewedTo":"4bbe5783","v2":true,"archivalReason":"renewed"},
{"id":"5e161ddf","renewedFrom":"00000000","size":0,"state":"pending","usability":"bad","contractPrice":"200000000000000000000000","initialRenterFunds":"61750486874757152884654080",
 "spending":{"deletions":"0","fundAccount":"1000000000000000000000000","sectorRoots":"0","uploads":"0"},"renewedTo":"00000000","v2":true,"archivalReason":"contract hasn't been confirmed on chain in time"}]`

// Costs of a contract stay in the account when it is renewed: they are reported separately from
// those of the new contract.
func TestRenewedContractsAreToldBeside(t *testing.T) {
	e := replay.Steps(replay.Load(t, "testdata/attach.jsonl"), "contracts after: spending")[0]
	e.Query = allContracts()
	e.Answer.Body = replay.Body{Text: renewed}
	got, failed := poll(t, on(t, []replay.Exchange{e}).Calls()[0])
	if len(failed) > 0 {
		t.Fatal(failed)
	}
	for name, want := range map[string]string{
		"spent": "71431229498500395902959616", "unspent": "71231229498500395902959616",
		"spent:fees": "200000000000000000000000", "spent:accounts": "0",
		"ended": "4691540769224229799014400", "ended_unspent": "57258946105532923085639680",
		"ended:fees": "200000000000000000000000", "ended:accounts": "3025254707335947434536960",
		"ended:upload": "1466286061888282364477440",
	} {
		if is := got[name].Amount; is == nil || is.String() != want {
			t.Errorf("%s: %v, want %s", name, is, want)
		}
	}
	if got["contracts"].Value != 1 || got["contract_bytes"].Value != 0 {
		t.Errorf("%+v %+v", got["contracts"], got["contract_bytes"])
	}
	if _, parts := sum(got, system.ReadEndedPrefix); parts.Cmp(got["ended"].Amount) != 0 {
		t.Errorf("parts make %v of %v", parts, got["ended"].Amount)
	}
}
