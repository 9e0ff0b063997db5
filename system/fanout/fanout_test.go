package fanout

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func TestSwarm(t *testing.T) {
	systemtest.RunSwarm(t, systemtest.Swarm{System: System{}, Plain: true, Leaf: true})
}
