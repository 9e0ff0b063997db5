package upload

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/scenariotest"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/s3"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

// On a real S3 server, a load test is cut off again and again, at any moment;
// the server is brought up anew each time, and knows nothing of what its client
// put before. In between, objects are lost, truncated and left half done.
func TestUploadResumesOnRealS3(t *testing.T) {
	sys := s3.System{}
	systemtest.Need(t, "versitygw", system.Check(t.Context(), sys, nil))
	hosts := systemtest.Hosts(t, 2)
	d := system.Deployment{Hosts: hosts[:1], Client: hosts[1], Dir: t.TempDir()}
	cell := uploadCell(300, 0, func(u *experiment.Upload) {
		u.Concurrency, u.Verify, u.Poll = 5, 1, experiment.Duration(200*time.Millisecond)
	})
	cell.Data.Spread = experiment.SizeRange{From: 1, To: 100e3}
	b := &uploadBench{t: t, name: "s3", cell: cell, ledger: newLedger(), limits: scenariotest.Limits(), mode: "start",
		epoch: time.Now()}
	pre := (&runner{site: scenario.Site{Run: "0123abcd"}}).trialNames(cell, 42)
	var err error
	if b.cluster, err = system.Begin(systemtest.Context(t), sys, system.Start, d); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.cluster.Stop(context.Background()) })
	random := rand.New(rand.NewPCG(1, 2))
	truncated, lost := 0, 0
	for round := 0; ; round++ {
		b.node = b.cluster.Nodes()[0].(system.Store)
		b.truth = b.node.(store)
		ctx, cancel := context.WithCancelCause(t.Context())
		stopAt := (round + 1) * 50
		killed := time.AfterFunc(time.Minute, func() { cancel(errors.New("it takes too long")) })
		b.ledger.fail = func() error {
			if len(b.ledger.jobs) >= stopAt && random.IntN(5) == 0 {
				cancel(context.Canceled)
				return context.Canceled
			}
			return nil
		}
		y, err := b.session(ctx)
		cancel(nil)
		killed.Stop()
		if err == nil {
			if y.metrics["accepted"] != 300 || y.metrics["verified"] != 300 || y.metrics["verify_failed"] != 0 {
				t.Errorf("metrics %v", y.metrics)
			}
			if round < 4 || truncated == 0 || lost == 0 {
				t.Errorf("%d sessions, %d objects truncated, %d lost: nothing was tested", round+1, truncated, lost)
			}
			if int(y.metrics["missing"]) != lost {
				t.Errorf("%v objects were found missing, %d were lost", y.metrics["missing"], lost)
			}
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		// One accepted object is lost, and one in doubt is half there.
		for _, j := range b.ledger.jobs {
			if j.State == record.JobAccepted {
				must(t, b.node.(system.Deleter).Delete(t.Context(), system.Ref(j.Ref)))
				lost++
				break
			}
		}
		for _, j := range b.ledger.jobs {
			if j.State == record.JobPutting && j.Size > 1 {
				if _, err := b.node.Put(t.Context(), j.Name, j.Size/2,
					bytes.NewReader(make([]byte, j.Size/2))); err != nil {
					t.Fatal(err)
				}
				truncated++
				break
			}
		}
		if err := b.cluster.Stop(t.Context()); err != nil {
			t.Logf("stop: %v", err)
		}
		if b.cluster, err = system.Revive(systemtest.Context(t), sys, d); err != nil {
			t.Fatal(err)
		}
	}
	b.ledger.fail = nil
	if err := b.holds(); err != nil {
		t.Error(err)
	}
	for _, j := range b.ledger.jobs {
		if j.State != record.JobAccepted || !strings.HasPrefix(j.Name, pre) {
			t.Errorf("job %+v", j)
		}
	}
	if err := has(b.ledger.happened(whatReconciled), "resumed: ", "in doubt", "1 missing"); err != nil {
		t.Error(err)
	}
}
