package siachain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

// quick returns settings with which only what is under test is waited for.
func quick(more ...string) system.Options {
	o := system.Options{"sync_interval": "100ms", "send_blocks_timeout": "2s", "send_block_timeout": "2s",
		"connect_timeout": "2s"}
	for i := 0; i+1 < len(more); i += 2 {
		o[more[i]] = more[i+1]
	}
	return o
}

func TestChains(t *testing.T) {
	t.Parallel()
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

func TestFailedRequestsAreCounted(t *testing.T) {
	var timedOut, failed atomic.Int64
	log := zap.New(listener{zapcore.DebugLevel, &timedOut, &failed})
	for _, err := range []error{fmt.Errorf("read: %w", os.ErrDeadlineExceeded), errors.New("reset"), context.Canceled} {
		log.Debug("failed to fetch blocks", zap.Error(err))
		log.Debug("another message", zap.Error(err))
	}
	if timedOut.Load() != 1 || failed.Load() != 1 {
		t.Errorf("%d timed out, %d failed, want one each", timedOut.Load(), failed.Load())
	}
}
