package siachain

import (
	"fmt"
	"strconv"
	"time"

	"go.sia.tech/coreutils/syncer"

	"github.com/plimsoll-project/plimsoll/system"
)

// settings are a fresh node's options. Peers have none but their port.
type settings struct {
	subscriber    string
	walletBatch   int
	sync          bool // consensus.db is synced at each commit
	syncInterval  time.Duration
	blocksTimeout time.Duration
	blockTimeout  time.Duration
	connect       time.Duration
	discovery     time.Duration
	outbound      int
}

// parse reads options; those that are missing have their defaults.
func parse(o system.Options) (s settings, err error) {
	if o, err = (System{}).Info().Fill(o); err != nil {
		return s, err
	}
	s.subscriber, s.sync = o["subscriber"], o["db_sync"] == "on"
	for name, to := range map[string]*time.Duration{
		"sync_interval": &s.syncInterval, "send_blocks_timeout": &s.blocksTimeout,
		"send_block_timeout": &s.blockTimeout,
		"connect_timeout":    &s.connect, "peer_discovery_interval": &s.discovery,
	} {
		if *to, err = o.Duration(name); err != nil || *to < time.Millisecond {
			return s, fmt.Errorf("sia-chain: option %q is a duration of at least 1ms, not %q", name, o[name])
		}
	}
	for name, to := range map[string]*int{
		"wallet_batch": &s.walletBatch, "max_outbound_peers": &s.outbound,
	} {
		if *to, err = strconv.Atoi(o[name]); err != nil || *to < 1 {
			return s, fmt.Errorf("sia-chain: option %q is a number of at least 1, not %q", name, o[name])
		}
	}
	return s, nil
}

// syncer are the settings as the library takes them.
func (s settings) syncer() []syncer.Option {
	return []syncer.Option{
		syncer.WithSyncInterval(s.syncInterval),
		syncer.WithSendBlocksTimeout(s.blocksTimeout),
		syncer.WithSendBlockTimeout(s.blockTimeout),
		syncer.WithConnectTimeout(s.connect),
		syncer.WithPeerDiscoveryInterval(s.discovery),
		syncer.WithMaxOutboundPeers(s.outbound),
	}
}
