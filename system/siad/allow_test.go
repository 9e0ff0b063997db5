package siad

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/replay"
)

// TestAllow: the allowance is sent, and read back.
func TestAllow(t *testing.T) {
	rec, reports := replay.Load(t, "testdata/attach.jsonl"), replay.Load(t, "testdata/reports.jsonl")
	wallet := only(t, reports, "report", "/wallet", 0)
	none, funded := only(t, rec, wrong, "/renter", 1), only(t, rec, "renter after that", "/renter", 0) // of 1 KS, 3 hosts, 200 blocks
	post := func(form string) []replay.Exchange {
		e := only(t, rec, "locked wallet: set an allowance answers 204 all the same", "/renter", 0)
		e[0].Body = replay.Body{Text: form}
		return e
	}
	kilo := new(big.Int).Exp(big.NewInt(10), big.NewInt(27), nil)
	for what, c := range map[string]struct {
		steps []replay.Exchange
		ask   system.Allowance
		want  string
	}{
		"all said":     {replay.Chain(wallet, none, post("funds=1000000000000000000000000000&hosts=3&period=200&renewwindow=100"), funded), system.Allowance{Amount: kilo, Hosts: 3, Period: 200}, ""},
		"the renter's": {replay.Chain(wallet, funded, post("funds=1000000000000000000000000000&hosts=3&period=200&renewwindow=50"), funded), system.Allowance{Amount: kilo}, ""},
		"not taken":    {replay.Chain(wallet, none, post("funds=1000000000000000000000000000&hosts=50&period=12960&renewwindow=6480"), none), system.Allowance{Amount: kilo}, "answered 204"},
		"the whole balance": {replay.Chain(wallet, none, post("funds=20317404274320000000000000000001&hosts=50&period=12960&renewwindow=6480"),
			[]replay.Exchange{none[0].JSON(200, map[string]any{"settings": map[string]any{"allowance": map[string]any{"funds": "20317404274320000000000000000001", "hosts": 50, "period": 12960}}})}), system.Allowance{}, ""},
		"too much": {wallet, system.Allowance{Amount: new(big.Int).Exp(big.NewInt(10), big.NewInt(40), nil)}, "allow less"},
		"empty":    {[]replay.Exchange{wallet[0].JSON(200, map[string]any{"unlocked": true, "confirmedsiacoinbalance": "0"})}, system.Allowance{}, "empty"},
		"locked":   {replay.Steps(rec, "locked wallet: wallet"), system.Allowance{Amount: kilo}, "/wallet/unlock"},
	} {
		err := attached(t, c.steps).Allow(t.Context(), c.ask)
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
		if what == "locked" && !errors.Is(err, system.ErrLocked) {
			t.Errorf("%s: %v", what, err)
		}
	}
	n := attached(t, nil)
	n.Write = false
	if err := n.Allow(t.Context(), system.Allowance{Amount: kilo}); !errors.Is(err, system.ErrReadOnly) {
		t.Errorf("read only: %v", err)
	}
}
