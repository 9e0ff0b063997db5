package siachain

import (
	"context"
	"errors"
	"os"

	"go.uber.org/zap/zapcore"
)

// listener reads from the syncer's log what the syncer reports in no other way:
// rounds of syncing and requests that failed. The messages are those of coreutils v0.24.0.
type listener struct {
	zapcore.LevelEnabler
	follower *follower
}

// With implements zapcore.Core.
func (l listener) With([]zapcore.Field) zapcore.Core { return l }

// Check implements zapcore.Core.
func (l listener) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return c.AddCore(e, l)
}

// Write implements zapcore.Core.
func (l listener) Write(e zapcore.Entry, fields []zapcore.Field) error {
	f := l.follower
	switch e.Message {
	case "syncing blocks":
		f.book.begin()
	case "failed to fetch blocks":
		for _, field := range fields {
			if err, ok := field.Interface.(error); ok && !errors.Is(err, context.Canceled) {
				f.book.blame(err, errors.Is(err, os.ErrDeadlineExceeded), f.least)
			}
		}
	}
	return nil
}

// Sync implements zapcore.Core.
func (listener) Sync() error { return nil }
