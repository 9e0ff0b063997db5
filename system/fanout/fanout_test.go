package fanout

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func TestSwarm(t *testing.T) {
	for _, from := range []string{"one", "all"} {
		t.Run("from "+from, func(t *testing.T) {
			t.Parallel()
			systemtest.RunSwarm(t, systemtest.Swarm{
				System: System{}, Options: system.Options{"from": from},
				Slow: system.Options{"upload_limit": "2097152"}, Plain: true, Leaf: true,
			})
		})
	}
}
