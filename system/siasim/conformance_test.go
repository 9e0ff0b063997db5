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

const variable = "PLIMSOLL_TEST_SIASIM"

// TestConformance: both adapters go through the conformance suite on a
// simulator, over real sockets.
func TestConformance(t *testing.T) {
	t.Setenv(variable, siasim.Password)
	for _, test := range []struct {
		system  system.System
		api     func(s *siasim.Sim) http.Handler
		without []string
		more    system.Options
	}{
		{siad.System{}, (*siasim.Sim).Siad, []string{"follow"}, nil}, // nobody asked for a chain
		{renterd.System{}, (*siasim.Sim).Renterd, nil, system.Options{"packing": "off"}},
	} {
		t.Run(test.system.Info().Name, func(t *testing.T) {
			systemtest.Run(t, systemtest.Suite{System: test.system, Write: true, Truths: systemtest.Truths{Slow: true,
				Without: test.without}, Attach: func(t *testing.T) (system.Options, func()) {
				s := siasim.New(siasim.Config{
					Data: 1, Parity: 2, Hosts: 4, Contracts: 3, Sector: 256 << 10, Rate: 200e6,
					Content: func(path string, size int64) io.Reader { // too large to be kept
						_, name, _ := strings.Cut(path, "-") // behind the run's mark
						return systemtest.Content(name, size)
					},
				})
				t.Cleanup(s.Close)
				server := httptest.NewServer(test.api(s))
				t.Cleanup(server.Close)
				opt := system.Options{"url": server.URL, "password": variable}
				for k, v := range test.more {
					opt[k] = v
				}
				return opt, server.Close
			}})
		})
	}
}

func TestMain(m *testing.M) { systemtest.Main(m) }
