package renterd

import (
	"os"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

// TestConformance is the suite on a private network of the renterd and the hostd that
// PLIMSOLL_RENTERD and PLIMSOLL_HOSTD name.
func TestConformance(t *testing.T) {
	if os.Getenv("PLIMSOLL_RENTERD") == "" || os.Getenv("PLIMSOLL_HOSTD") == "" {
		systemtest.Need(t, name, []system.Problem{{What: "PLIMSOLL_RENTERD and PLIMSOLL_HOSTD name no programs",
			Hint: System{}.Info().Install}})
	}
	// Slow: an object of one byte is a slab of 12 MiB, and of a hundred downloads
	// that stand still the last get no memory in the node.
	systemtest.Run(t, systemtest.Suite{System: System{},
		Options: system.Options{"host_size": "8589934592"}, Truths: systemtest.Truths{Slow: true}})
}
