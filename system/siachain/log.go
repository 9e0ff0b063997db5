package siachain

import (
	"context"
	"errors"
	"os"

	"go.uber.org/zap/zapcore"

	"github.com/plimsoll-project/plimsoll/system/siachain/chain"
)

// listener counts failed requests in the syncer's log, because the syncer reports them nowhere
// else. The message is that of coreutils v0.24.0.
type listener struct {
	zapcore.LevelEnabler
	book *chain.PeerStore
}

// With implements zapcore.Core.
func (l listener) With([]zapcore.Field) zapcore.Core { return l }

// Check implements zapcore.Core.
func (l listener) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return c.AddCore(e, l)
}

// Write implements zapcore.Core.
func (l listener) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if e.Message != "failed to fetch blocks" {
		return nil
	}
	for _, field := range fields {
		if err, ok := field.Interface.(error); ok && !errors.Is(err, context.Canceled) {
			l.book.Failure(errors.Is(err, os.ErrDeadlineExceeded))
		}
	}
	return nil
}

// Sync implements zapcore.Core.
func (listener) Sync() error { return nil }
