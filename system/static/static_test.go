package static

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func TestConformance(t *testing.T) {
	for name, opt := range map[string]system.Options{
		"plain":      nil,
		"https":      {"tls": "true", "h2": "false"},
		"https + h2": {"tls": "true"},
	} {
		t.Run(name, func(t *testing.T) {
			systemtest.Run(t, systemtest.Suite{System: System{}, Options: opt, Brief: opt != nil})
		})
	}
}
