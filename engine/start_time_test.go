package engine

import (
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// patient is a system that takes minutes to start and says so by an option.
type patient struct{ mem.System }

func (patient) Info() system.Info {
	info := mem.System{}.Info()
	info.Options = append(info.Options, system.Option{Name: "start_timeout", Type: "duration", Default: "15m0s"})
	return info
}

// A system with a time of its own to start is not cut off at the start limit of
// all others, whose default is a minute; the longer of the two counts.
func TestStartTime(t *testing.T) {
	for _, c := range []struct {
		what  string
		sys   system.System
		mode  string
		with  map[string]string
		limit time.Duration
		want  time.Duration
	}{
		{"without the option", mem.System{}, "start", nil, time.Minute, time.Minute},
		{"its default", patient{}, "start", nil, time.Minute, 15 * time.Minute},
		{"set shorter than the limit", patient{}, "start", map[string]string{"start_timeout": "30s"}, time.Minute,
			time.Minute},
		{"the limit is longer", patient{}, "start", nil, time.Hour, time.Hour},
		{"attached", patient{}, "attach", nil, time.Minute, time.Minute},
	} {
		r := &run{plan: &experiment.Plan{}}
		r.plan.Experiment.Limits.Start = experiment.Duration(c.limit)
		s := &site{sys: c.sys, use: experiment.SystemUse{Name: "a", Use: "mem", With: c.with}}
		if c.mode == "start" {
			s.hosts = make([]testbed.Host, 1)
		}
		if got := r.startTime(s); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
