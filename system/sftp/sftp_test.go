package sftp

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func TestConformance(t *testing.T) {
	for name, opt := range map[string]system.Options{
		"concurrent":    nil,
		"one by one":    {"concurrent": "false"},
		"large packets": {"packet": "131072"},
	} {
		t.Run(name, func(t *testing.T) {
			systemtest.Run(t, systemtest.Suite{System: System{}, Options: opt, Daemon: "sshd"})
		})
	}
}
