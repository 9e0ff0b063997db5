package codex

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func TestConformance(t *testing.T) {
	systemtest.Run(t, systemtest.Suite{System: System{}, Namespaces: true, Truths: systemtest.Truths{
		MinSize:           1,
		Unknown:           []system.Ref{unknown},
		Malformed:         []system.Ref{small[:len(small)-4], small + "/exists"},
		DeleteTakesShared: true,
		CutOffStays:       true,
		Without:           []string{"spread", "restart"},
	}})
}

func TestSwarm(t *testing.T) {
	systemtest.RunSwarm(t, systemtest.Swarm{System: System{}, Namespaces: true})
}

func TestBadOptions(t *testing.T) {
	hosts := systemtest.Hosts(t, 2)
	d := system.Deployment{Hosts: hosts[:1], Client: hosts[1], Dir: t.TempDir(),
		Options: system.Options{"url": "127.0.0.1:8080"}}
	if _, err := system.Begin(t.Context(), System{}, system.Attach, d); err == nil {
		t.Error("attach to what is no URL")
	}
	d.Options = system.Options{"url": "http://127.0.0.1:8080/api/codex/v1"}
	if _, err := system.Begin(t.Context(), System{}, system.Attach, d); err == nil {
		t.Error("attach to a URL with a path, which we would not ask at")
	}
	d.Options = system.Options{"url": "http://127.0.0.1:8080"}
	if _, err := system.Begin(t.Context(), System{}, system.Start, d); err == nil {
		t.Error("start with a URL")
	}
}
