package renterd

import (
	"math/big"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/replay"
)

// renewed are one of the contracts of a renterd v2.9.3 and the one that it became,
// as `filtermode=all` told them after the renewal (ids shortened). It began with
// 61.75 SC, had used 4.49 and 0.2 for its price, and held a gigabyte; the new one
// told no size yet. The third was given up before it was on the chain.
const renewed = `[
{"id":"4bbe5783","renewedFrom":"4559d959","size":0,"state":"active","usability":"bad","contractPrice":"200000000000000000000000","initialRenterFunds":"71231229498500395902959616",
 "spending":{"deletions":"0","fundAccount":"0","sectorRoots":"0","uploads":"0"},"renewedTo":"00000000","v2":true},
{"id":"4559d959","renewedFrom":"00000000","size":1073741824,"state":"complete","usability":"bad","contractPrice":"200000000000000000000000","initialRenterFunds":"61750486874757152884654080",
 "spending":{"deletions":"0","fundAccount":"3025254707335947434536960","sectorRoots":"0","uploads":"1466286061888282364477440"},"renewedTo":"4bbe5783","v2":true,"archivalReason":"renewed"},
{"id":"5e161ddf","renewedFrom":"00000000","size":0,"state":"pending","usability":"bad","contractPrice":"200000000000000000000000","initialRenterFunds":"61750486874757152884654080",
 "spending":{"deletions":"0","fundAccount":"1000000000000000000000000","sectorRoots":"0","uploads":"0"},"renewedTo":"00000000","v2":true,"archivalReason":"contract hasn't been confirmed on chain in time"}]`

// What a contract had used does not leave the account when it is renewed: it is
// told beside the new one's.
func TestRenewedContractsAreToldBeside(t *testing.T) {
	e := replay.Steps(replay.Load(t, "testdata/attach.jsonl"), "contracts after: spending")[0]
	e.Query = allContracts()
	e.Answer.Body = replay.Body{Text: renewed}
	got := map[string]system.Reading{}
	all, err := on(t, []replay.Exchange{e}).Calls()[0].Read(t.Context())
	must(t, err)
	for _, r := range all {
		got[r.Name] = r
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
	parts := new(big.Int)
	for name, r := range got {
		if strings.HasPrefix(name, system.ReadEndedPrefix) {
			parts.Add(parts, r.Amount)
		}
	}
	if parts.Cmp(got["ended"].Amount) != 0 {
		t.Errorf("parts make %v of %v", parts, got["ended"].Amount)
	}
}
