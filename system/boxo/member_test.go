package boxo

import (
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

// TestPassedOnMidway: in a chain, the last node gets blocks from one that has not
// got all.
func TestPassedOnMidway(t *testing.T) {
	const size = 12 << 20
	hosts := systemtest.SlowHosts(t, 16e6, 4)
	var nodes [3]*member.Daemon
	for i, n := range systemtest.Start(t, System{}, nil, hosts).Nodes() {
		nodes[i] = n.(*member.Daemon)
	}
	ref, err := nodes[0].Publish(systemtest.Context(t), "chain", size, systemtest.Content("chain", size))
	must(t, err)
	for i, n := range nodes[1:] {
		from, err := nodes[i].Address(systemtest.Context(t))
		if err == nil {
			err = n.Fetch(systemtest.Context(t), ref, []string{from})
		}
		must(t, err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		last, err := nodes[2].Progress(systemtest.Context(t), ref)
		must(t, err)
		middle, err := nodes[1].Progress(systemtest.Context(t), ref)
		must(t, err)
		if last.Verified > 0 && !middle.Complete { // middle was asked later
			t.Logf("%+v, after %+v", last, middle)
			return
		}
		if middle.Complete || time.Now().After(end) {
			t.Fatalf("nothing was passed on midway: %+v, after %+v", last, middle)
		}
	}
}
