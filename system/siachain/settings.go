package siachain

import (
	"go.sia.tech/coreutils/syncer"

	"github.com/plimsoll-project/plimsoll/system"
)

// settings are the options of a fresh node. Peers have none except their port.
type settings struct {
	subscriber  string
	walletBatch int
	noSync      bool            // whether commits to consensus.db skip the sync to disk
	syncer      []syncer.Option // in the library's form
}

// parse parses options. Missing ones get their defaults.
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
