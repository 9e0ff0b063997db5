package upload

import (
	"context"
	"errors"
	"github.com/plimsoll-project/plimsoll/scenario/internal/scenariotest"
	"io"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
)

// refuser is a system that has no room before a moment.
type refuser struct {
	*mem.Node
	until time.Time
	asked []time.Time
}

func (n *refuser) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	n.asked = append(n.asked, time.Now())
	if time.Now().Before(n.until) {
		return "", system.ErrQuota
	}
	return n.Node.Put(ctx, name, size, r)
}

// Sessions that are killed again and again do not use retries up: the pauses
// between attempts are those of one session.
func TestUploadBacksOffAcrossSessions(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		b := newUploadBench(t, nil, uploadCell(1, 100, func(u *experiment.Upload) {
			u.Retries, u.Backoff = 6, experiment.Duration(time.Minute)
		}))
		node := &refuser{Node: b.mem, until: time.Now().Add(30 * time.Minute)}
		b.node = node
		sessions := 0
		for ; sessions < 1000; sessions++ {
			ctx, cancel := context.WithTimeoutCause(t.Context(), 7*time.Second, errCrash)
			_, err := b.session(ctx)
			cancel()
			if err == nil {
				break
			}
			if !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
		}
		if err := b.holds(); err != nil || b.ledger.count(record.JobDurable)+b.ledger.count(record.JobAccepted) != 1 || sessions < 100 {
			t.Fatalf("after %d sessions: %v, %v", sessions, err, b.ledger.jobs)
		}
		want := []time.Duration{time.Minute, 5 * time.Minute, 10 * time.Minute, 10 * time.Minute, 10 * time.Minute}
		if len(node.asked) != len(want)+1 {
			t.Fatalf("asked at %v", node.asked)
		}
		for i, pause := range want {
			if took := node.asked[i+1].Sub(node.asked[i]); took < pause || took > pause+10*time.Second {
				t.Errorf("pause %d was %v, want %v", i+1, took, pause)
			}
		}
	})
}
