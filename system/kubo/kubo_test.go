package kubo

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func TestConformance(t *testing.T) {
	systemtest.Run(t, systemtest.Suite{System: System{}, Truths: systemtest.Truths{
		Unknown:          []system.Ref{unknown},
		Malformed:        []system.Ref{medium[:len(medium)-4], medium + "/x"},
		ContentAddressed: true,
		PutPassesServer:  true, // the client's own node takes it
		Without:          []string{"spread", "restart"},
	}})
}

func TestSwarm(t *testing.T) {
	systemtest.RunSwarm(t, systemtest.Swarm{System: System{}})
}
