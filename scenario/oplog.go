package scenario

import (
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// flushEvery is how long operations wait at most before they are passed on with the next.
const flushEvery = time.Second

// OpLog passes the operations of a trial on to its sink, in blocks. It is safe for
// concurrent use.
type OpLog struct {
	block func([]byte) error

	mu   sync.Mutex
	ops  []record.Op
	sent time.Time
}

// NewOpLog makes one for a [Sink.Block].
func NewOpLog(block func([]byte) error) *OpLog { return &OpLog{block: block, sent: time.Now()} }

// Add takes an operation that has ended.
func (l *OpLog) Add(op record.Op) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ops = append(l.ops, op)
	if len(l.ops) >= record.BlockSize || time.Since(l.sent) > flushEvery {
		return l.send()
	}
	return nil
}

// Flush passes on what it has.
func (l *OpLog) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.send()
}

func (l *OpLog) send() error {
	if len(l.ops) == 0 {
		return nil
	}
	err := l.block(record.AppendBlock(nil, l.ops))
	l.ops, l.sent = l.ops[:0], time.Now()
	return err
}
