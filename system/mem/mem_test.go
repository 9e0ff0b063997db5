package mem

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func TestConformance(t *testing.T) {
	systemtest.Run(t, systemtest.Suite{System: System{}, Truths: systemtest.Truths{
		InProcess: true, Unknown: []system.Ref{"object/no-such-object", "mutable/no-such-object", "dir/no-such-object"},
	}, Options: system.Options{"a": "1ms", "r": "2", "dial": "1", "rtt": "2ms", "rate": "2147483648", "settle": "20ms",
		"cache": "true", "nodes": "3", "expansion": "1.5"}})
}
