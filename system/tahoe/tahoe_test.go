package tahoe

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func truths() systemtest.Truths {
	return systemtest.Truths{
		ContentAddressed: true, // by a secret of the client's
		Slow:             true,
		Unknown: []system.Ref{
			"URI:CHK:aaaaaaaaaaaaaaaaaaaaaaaaaa:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:2:3:1000",
			"URI:SSK:aaaaaaaaaaaaaaaaaaaaaaaaaa:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		},
		Malformed: []system.Ref{
			"URI:CHK:aaaaaaaaaaaaaaaaaaaaaaaaaa:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:2:3",
			"URI:LIT:1", "URI:DIR2-CHK:a", "URI:CHK:AAAA",
		},
	}
}

func TestConformance(t *testing.T) {
	// The suite starts four of them: few daemons, each of which takes a second of
	// CPU time.
	opt := system.Options{"nodes": "1", "needed": "1", "total": "1", "mutable": "MDMF"}
	systemtest.Run(t, systemtest.Suite{System: System{}, Options: opt, Truths: truths()})
}
