package siasim_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/renterd"
	"github.com/plimsoll-project/plimsoll/system/siad"
	"github.com/plimsoll-project/plimsoll/system/siasim"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

// TestConformance: both adapters go through the conformance suite on a
// simulator, over real sockets.
func TestConformance(t *testing.T) {
	t.Setenv(variable, siasim.Defaults().Password)
	for _, test := range []struct {
		system  system.System
		api     func(s *siasim.Sim) http.Handler
		without []string
	}{
		{siad.System{}, (*siasim.Sim).Siad, []string{"follow"}}, // nobody asked for a chain
		{renterd.System{}, (*siasim.Sim).Renterd, nil},
	} {
		t.Run(test.system.Info().Name, func(t *testing.T) {
			systemtest.Run(t, systemtest.Suite{System: test.system, Write: true, Truths: systemtest.Truths{Slow: true, Without: test.without}, Attach: func(t *testing.T) (system.Options, func()) {
				s := start(t, siasim.Config{
					Data: 1, Parity: 2, Hosts: 4, Contracts: 3, Sector: 256 << 10, Up: siasim.Bandwidth{Start: 200e6}, KeepEach: 6 << 20, KeepBytes: 256 << 20,
					Content: func(path string, size int64) io.Reader { // too large to be kept
						_, name, _ := strings.Cut(path, "-") // behind the run's mark
						return systemtest.Content(name, size)
					},
				})
				server := httptest.NewServer(test.api(s))
				t.Cleanup(server.Close)
				opt := system.Options{"url": server.URL, "password": variable}
				if test.system.Info().Name == "renterd" {
					opt["packing"] = "off" // or what is put last never leaves the node
				}
				return opt, server.Close
			}})
		})
	}
}

func TestMain(m *testing.M) { systemtest.Main(m) }
