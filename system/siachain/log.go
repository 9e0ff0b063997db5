package siachain

import (
	"context"
	"errors"
	"os"
	"sync/atomic"

	"go.uber.org/zap/zapcore"
)

// listener counts failed requests in the syncer's log, because the syncer reports them nowhere
// else. The message is that of coreutils v0.24.0.
type listener struct {
	zapcore.LevelEnabler
	timedOut, failed *atomic.Int64 // of all peers: the log does not tell which peer a request was sent to
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
		err, ok := field.Interface.(error)
		switch {
		case !ok || errors.Is(err, context.Canceled):
		case errors.Is(err, os.ErrDeadlineExceeded):
			l.timedOut.Add(1)
		default:
			l.failed.Add(1)
		}
	}
	return nil
}

// Sync implements zapcore.Core.
func (listener) Sync() error { return nil }
