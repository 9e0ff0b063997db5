//go:build nowalletd

package siachain

import (
	"errors"
	"sync/atomic"

	"go.sia.tech/core/types"
	siachain "go.sia.tech/coreutils/chain"

	"github.com/plimsoll-project/plimsoll/system"
)

// withWalletd reports whether this program includes walletd's index. Without the clone's go.work,
// walletd needs SQLite in C, which cannot be linked together with that of another module.
const withWalletd = false

type wallet struct{ indexed, commits atomic.Int64 }

func openWallet(_ string, o system.Options, _ *siachain.Manager, _ []types.Address) (*wallet, error) {
	if o["subscriber"] == "none" {
		return nil, nil
	}
	return nil, errors.New("sia-chain: this program of `go install` has no walletd: use a release or `make build` in " +
		"a clone")
}

func (*wallet) close() error { return nil }
