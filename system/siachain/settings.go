package siachain

import (
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
	s.walletBatch = int(o.Int("wallet_batch"))
	s.syncer = []syncer.Option{
		syncer.WithSyncInterval(o.Duration("sync_interval")), syncer.WithConnectTimeout(o.Duration("connect_timeout")),
		syncer.WithSendBlocksTimeout(o.Duration("send_blocks_timeout")),
		syncer.WithSendBlockTimeout(o.Duration("send_block_timeout")),
	}
	return s, nil
}
