package nginx

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/system/systemtest/imagetest"
)

// From an image nginx does what it does from the machine's package.
func TestConformanceFromImage(t *testing.T) {
	bin, err := program(nil)
	if err != nil {
		systemtest.Need(t, name, []system.Problem{{What: err.Error()}})
	}
	img := imagetest.OfMachine(t, bin, "/usr/lib/nginx", "/usr/share/nginx", "/etc/ssl/openssl.cnf")
	opt := system.Options{"image": systemtest.Pulled(t, img), "tls": "true"}
	systemtest.Run(t, systemtest.Suite{System: System{}, Options: opt, Image: true})
}
