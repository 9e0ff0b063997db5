package boxo

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

var truths = systemtest.Truths{
	ContentAddressed: true,
	Unknown: []system.Ref{
		"bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e", // a leaf
		"bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi", // a node
	},
}

func TestConformance(t *testing.T) {
	truths := truths
	truths.Without = []string{"spread", "restart"}
	systemtest.Run(t, systemtest.Suite{System: System{}, Truths: truths})
}

func TestSwarm(t *testing.T) {
	for name, opt := range map[string]system.Options{"defaults": nil, "small blocks": {"chunk": "65536"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			systemtest.RunSwarm(t, systemtest.Swarm{System: System{}, Options: opt, Brief: opt != nil, Plain: true})
		})
	}
}
