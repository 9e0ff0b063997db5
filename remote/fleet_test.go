package remote

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/testbed/agent"
)

// fence keeps calling a lost machine that does not answer, but not after the run.
func TestFence(t *testing.T) {
	credentials, _, err := agent.NewCredentials()
	must(t, err)
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		f := newFleet(ctx, order{}, &experiment.Plan{}, nil)
		attempts, ended := 0, make(chan struct{})
		opt := agent.Options{Name: "a", Credentials: credentials, Dial: func(ctx context.Context) (net.Conn, error) {
			attempts++
			<-ctx.Done()
			return nil, errors.New("no answer")
		}}
		go func() {
			fence(f.ctx, opt)
			close(ended)
		}()
		time.Sleep(5 * time.Minute)
		if attempts < 4 || attempts > 6 {
			t.Errorf("it was called %d times in 5 minutes", attempts)
		}
		end()
		stopped := time.Now()
		<-ended
		if late := time.Since(stopped); late > time.Second {
			t.Errorf("it is called %s after the run", late)
		}
	})
}

// The frequent events of a long trial take little space; those of a short one are written at once.
func TestOftenEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r := &recorder{enc: gob.NewEncoder(&out)}
		say := func(d time.Duration) (events int) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
				before := out.Len()
				r.event(event{Event: engine.Event{Kind: engine.EventState, Cell: "cell",
					State: scenario.State{Objects: 1e9, Accepted: 1e9, Bytes: 1e15, At: d}}})
				if out.Len() > before {
					events++
				}
			}
			return events
		}
		for range 2 {
			r.event(event{Event: engine.Event{Kind: engine.EventBegin, N: 1, Total: 2, Cell: "cell"}})
			if n := say(time.Minute); n < 59 {
				t.Errorf("%d events in the first minute", n)
			}
		}
		if n := say(24 * time.Hour); n > 24*360+1 || out.Len() > 3e6 {
			t.Errorf("%d events, %d bytes in a day", n, out.Len())
		}
	})
}
