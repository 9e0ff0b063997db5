package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// sickCluster answers its probe only after a while; until then it hangs.
type sickCluster struct{ well time.Time }

func (c sickCluster) Nodes() []system.Node       { return []system.Node{c} }
func (sickCluster) Identity() map[string]string  { return nil }
func (sickCluster) Stop(context.Context) error   { return nil }
func (sickCluster) Processes() []testbed.Process { return nil }
func (c sickCluster) Health(ctx context.Context) error {
	if time.Now().Before(c.well) {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// TestHealthIsPatientButNotForEver: in virtual time, a server that recovers
// within the patience is waited for; one that does not is given up, and never
// later than one probe after the patience. Ctrl-C does not wait for patience to end.
func TestHealthIsPatientButNotForEver(t *testing.T) {
	canceled := context.Canceled.Error()
	for _, c := range []struct {
		name         string
		after, ended time.Duration // when it recovers, and the user ends the run; 0: never
		want         string        // in the error
		most         time.Duration
	}{
		{"well", 0, 0, "", healthTimeout + healthPause},
		{"recovers", 40 * time.Second, 0, "", 40*time.Second + healthTimeout + healthPause},
		{"never recovers", time.Hour, 0, "sick: it did not answer its health probe",
			healthPatience + healthTimeout + healthPause},
		{"the user ends the run", time.Hour, 7 * time.Second, canceled, 8 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.ended > 0 {
					time.AfterFunc(c.ended, cancel)
				}
				r := &run{plan: &experiment.Plan{}, say: silent{}}
				s := &site{use: experiment.SystemUse{Name: "sick"}, cluster: sickCluster{time.Now().Add(c.after)}}
				begun := time.Now()
				restarted, err := r.healthy(ctx, s)
				if restarted {
					t.Error("an attached system was restarted")
				}
				if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) ||
					c.want == canceled && !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				if took := time.Since(begun); took > c.most {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}
