package fanout

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func TestSwarm(t *testing.T) {
	systemtest.RunSwarm(t, systemtest.Swarm{
		System: System{}, Slow: system.Options{"upload_limit": "2097152"}, Plain: true, Leaf: true,
	})
}
