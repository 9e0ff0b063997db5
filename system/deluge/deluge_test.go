package deluge

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func swarm(transport string) systemtest.Swarm {
	return systemtest.Swarm{
		System: System{}, Options: system.Options{"transport": transport},
		Slow: system.Options{"upload": "2000000"}, Plain: true,
	}
}

func TestConformance(t *testing.T) { systemtest.RunSwarm(t, swarm("tcp")) }
