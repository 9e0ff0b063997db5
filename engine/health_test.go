package engine

import (
	"context"
	"errors"
	"io"
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
func (sickCluster) Get(context.Context, system.Ref, io.Writer) error {
	return errors.ErrUnsupported
}
func (sickCluster) Put(context.Context, string, int64, io.Reader) (system.Ref, error) {
	return "", errors.ErrUnsupported
}

func (c sickCluster) Health(ctx context.Context) error {
	if time.Now().Before(c.well) {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// TestHealthIsPatientButNotForEver: in virtual time, a server that recovers
// within the patience is waited for; one that does not is given up, and never
// later than one probe after the patience.
func TestHealthIsPatientButNotForEver(t *testing.T) {
	for _, c := range []struct {
		name  string
		after time.Duration
		fails bool
	}{
		{"well", 0, false},
		{"recovers", 40 * time.Second, false},
		{"never recovers", time.Hour, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &run{plan: &experiment.Plan{}, say: silent{}}
				s := &site{use: experiment.SystemUse{Name: "sick"}, cluster: sickCluster{time.Now().Add(c.after)}}
				begun := time.Now()
				restarted, err := r.healthy(context.Background(), s)
				took := time.Since(begun)
				if restarted {
					t.Error("an attached system was restarted")
				}
				if (err != nil) != c.fails {
					t.Errorf("got %v", err)
				}
				if err != nil && !strings.Contains(err.Error(), "sick: it did not answer its health probe") {
					t.Errorf("the error says %q", err)
				}
				if !c.fails && took > c.after+healthTimeout+healthPause ||
					took > healthPatience+healthTimeout+healthPause {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// TestHealthEndsWithTheUser: Ctrl-C does not wait for patience to end.
func TestHealthEndsWithTheUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(7*time.Second, cancel)
		r := &run{plan: &experiment.Plan{}, say: silent{}}
		s := &site{use: experiment.SystemUse{Name: "sick"}, cluster: sickCluster{time.Now().Add(time.Hour)}}
		begun := time.Now()
		if _, err := r.healthy(ctx, s); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want canceled", err)
		}
		if took := time.Since(begun); took > 8*time.Second {
			t.Errorf("it took %s after the user had stopped it at 7 s", took)
		}
	})
}
