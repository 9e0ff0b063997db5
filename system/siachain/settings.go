package siachain

import (
	"fmt"
	"time"

	"go.sia.tech/coreutils/syncer"

	"github.com/plimsoll-project/plimsoll/system"
)

// settings are a fresh node's options. Peers have none but their port.
type settings struct {
	subscriber  string
	walletBatch int
	noSync      bool            // consensus.db is not synced at each commit
	syncer      []syncer.Option // as the library takes them
}

// parse reads options; those that are missing have their defaults.
func parse(o system.Options) (s settings, err error) {
	if o, err = (System{}).Info().Fill(o); err != nil {
		return s, err
	}
	s.subscriber, s.noSync = o["subscriber"], o["db_sync"] == "off"
	for name, with := range map[string]func(time.Duration) syncer.Option{
		"sync_interval": syncer.WithSyncInterval, "connect_timeout": syncer.WithConnectTimeout,
		"send_blocks_timeout": syncer.WithSendBlocksTimeout, "send_block_timeout": syncer.WithSendBlockTimeout,
	} {
		d, err := o.Duration(name)
		if err != nil || d < time.Millisecond {
			return s, fmt.Errorf("sia-chain: option %q is a duration of at least 1ms, not %q", name, o[name])
		}
		s.syncer = append(s.syncer, with(d))
	}
	batch, err := o.Int("wallet_batch")
	if err != nil || batch < 1 {
		return s, fmt.Errorf("sia-chain: option \"wallet_batch\" is a number of at least 1, not %q", o["wallet_batch"])
	}
	s.walletBatch = int(batch)
	return s, nil
}
