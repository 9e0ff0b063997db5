package nginx

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/system/systemtest/imagetest"
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

// From an image nginx behaves like the one of the machine's package.
func TestConformanceFromImage(t *testing.T) {
	systemtest.Need(t, System{}, nil)
	b, err := program(t.Context(), nil)
	systemtest.Must(t, err)
	img := imagetest.OfMachine(t, b.path, "/usr/lib/nginx", "/usr/share/nginx", "/etc/ssl/openssl.cnf")
	opt := system.Options{"image": systemtest.Pulled(t, img), "tls": "true"}
	systemtest.Run(t, systemtest.Suite{System: System{}, Options: opt, Image: true})
}
