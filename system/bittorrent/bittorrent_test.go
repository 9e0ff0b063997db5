package bittorrent

import (
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func TestConformance(t *testing.T) {
	systemtest.Run(t, systemtest.Suite{System: System{}, Truths: systemtest.Truths{
		MinSize:   1,
		Unknown:   []system.Ref{system.Ref(strings.Repeat("0a", 20))},
		Malformed: []system.Ref{system.Ref(strings.Repeat("0A", 20)), system.Ref(strings.Repeat("0a", 32))},
	}})
}

func TestSwarm(t *testing.T) {
	for name, opt := range map[string]system.Options{
		"defaults": nil,
		"uTP, encrypted, small pieces, metainfo from peers": {"transport": "utp", "encryption": "true", "piece": "65536", "metainfo": "peers"},
	} {
		t.Run(name, func(t *testing.T) {
			if opt != nil && testing.Short() {
				t.Skip("-short: the defaults alone")
			}
			t.Parallel()
			systemtest.RunSwarm(t, systemtest.Swarm{System: System{}, Options: opt, Slow: system.Options{"upload_limit": "2097152"}, Plain: true})
		})
	}
}
