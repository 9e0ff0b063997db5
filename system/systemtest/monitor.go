package systemtest

import (
	"crypto/rand"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
)

// counts are the readings that are not money.
var counts = []string{
	system.ReadSynced, system.ReadUnlocked, system.ReadHeight, system.ReadPeers, system.ReadHosts, system.ReadContracts, system.ReadGoodContracts, system.ReadContractBytes,
	system.ReadFiles, system.ReadUploads, system.ReadFileBytes, system.ReadAbsolute, system.ReadRedundancyMean, system.ReadRedundancyMin,
	system.ReadRedundancyMax, system.ReadBelow, system.ReadDisk, system.ReadEntries, system.ReadInodes,
}

// amounts are the readings that are money; so are those with a prefix.
var amounts = []string{system.ReadBalance, system.ReadOutgoing, system.ReadIncoming, system.ReadUnspent, system.ReadSpent, system.ReadEnded, system.ReadEndedUnspent}

// testMonitor makes the calls that a collector makes, and holds their readings
// to the contract. Being looked at changes nothing.
func testMonitor(t *testing.T, n system.Getter) {
	m, ok := n.(system.Monitored)
	if !ok {
		t.Skip("the system has no calls of its own to be polled by")
	}
	if _, provides := n.(system.Provider); !provides {
		put(t, n.(system.Store), "monitored-"+rand.Text(), []byte("looked at"))
	}
	before := listing(t, n)
	calls := map[string]bool{}
	told := map[string]string{}
	for range 2 {
		for _, c := range m.Calls() {
			calls[c.Name] = true
			readings, err := c.Read(Context(t))
			if err != nil {
				t.Logf("%s: %v", c.Name, err) // a gap: nothing is known yet, for instance
			}
			for _, r := range readings {
				if by, twice := told[r.Name]; twice && by != c.Name {
					t.Errorf("%s and %s both tell %s", by, c.Name, r.Name)
				}
				told[r.Name] = c.Name
				checkReading(t, c.Name, r)
			}
		}
	}
	if len(calls) == 0 || len(told) == 0 {
		t.Errorf("%d calls tell %d readings", len(calls), len(told))
	}
	if after := listing(t, n); !slices.Equal(before, after) {
		t.Errorf("objects before being looked at: %v, after it: %v", before, after)
	}
}

func checkReading(t *testing.T, call string, r system.Reading) {
	t.Helper()
	money := slices.Contains(amounts, r.Name) || strings.HasPrefix(r.Name, system.ReadSpentPrefix) || strings.HasPrefix(r.Name, system.ReadEndedPrefix) || strings.HasPrefix(r.Name, system.ReadPricePrefix)
	switch {
	case r.Name == "" || r.Name == system.ReadSpentPrefix || r.Name == system.ReadEndedPrefix || r.Name == system.ReadPricePrefix:
		t.Errorf("%s: a reading without a name: %+v", call, r)
	case r.Bad != "":
		t.Logf("%s: %s is not to be used: %s", call, r.Name, r.Bad)
	case math.IsNaN(r.Value) || math.IsInf(r.Value, 0) || r.Value < 0:
		t.Errorf("%s: %+v", call, r)
	case money && r.Amount == nil:
		t.Errorf("%s: %s is money, and has no exact amount", call, r.Name)
	case slices.Contains(counts, r.Name) && r.Amount != nil:
		t.Errorf("%s: %s is no money, and has an amount", call, r.Name)
	}
}

// listing is what the node lists, in the order of refs.
func listing(t *testing.T, n system.Getter) (out []system.Object) {
	t.Helper()
	l, ok := n.(system.Lister)
	if !ok {
		return nil
	}
	all, err := l.List(Context(t))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b system.Object) int { return strings.Compare(string(a.Ref), string(b.Ref)) })
	return all
}
