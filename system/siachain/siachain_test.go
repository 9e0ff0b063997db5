package siachain

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/siachain/chain"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

// quick are settings with which nothing is waited for that is not under test.
func quick(more ...string) system.Options {
	o := system.Options{"sync_interval": "100ms", "send_blocks_timeout": "2s", "send_block_timeout": "2s",
		"connect_timeout": "2s"}
	for i := 0; i+1 < len(more); i += 2 {
		o[more[i]] = more[i+1]
	}
	return o
}

func TestChains(t *testing.T) {
	for _, c := range []struct{ form, subscriber string }{{"v2", "none"}, {"v1", "full"}} {
		t.Run(c.form+" subscriber "+c.subscriber, func(t *testing.T) {
			t.Parallel()
			systemtest.RunChains(t, systemtest.Chains{
				System: System{}, Options: quick("subscriber", c.subscriber), Indexed: c.subscriber != "none",
				Spec:  system.ChainSpec{Blocks: 150, Transactions: 1, Form: c.form, Seed: 1},
				Store: "consensus.db",
			})
		})
	}
}

// TestChainsThatCannotBe: what is refused before anything is started is what is
// refused when a chain is made.
func TestChainsThatCannotBe(t *testing.T) {
	for _, s := range []chain.Spec{
		{Blocks: 1, Form: "v1"}, {Blocks: chain.MaxBlocks, Transactions: chain.MaxTransactions, Form: "v2"},
		{Blocks: 1, Form: "v3"}, {Blocks: chain.MaxBlocks + 1, Form: "v2"},
		{Blocks: 1, Transactions: chain.MaxTransactions + 1, Form: "v1"},
	} {
		before := System{}.Info().Chains.Problems(system.ChainSpec{Blocks: s.Blocks, Transactions: s.Transactions,
			Form: s.Form}, []string{system.Stranger, system.Silent})
		if then := s.Validate(); (then == nil) != (len(before) == 0) {
			t.Errorf("%+v: %v, and when it is made %v", s, before, then)
		}
	}
}
