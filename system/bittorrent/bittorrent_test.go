package bittorrent

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func TestSwarm(t *testing.T) {
	for name, opt := range map[string]system.Options{
		"defaults":          nil,
		"uTP, small pieces": {"transport": "utp", "piece": "65536"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			systemtest.RunSwarm(t, systemtest.Swarm{
				System: System{}, Options: opt, Brief: opt != nil, Plain: true,
			})
		})
	}
}
