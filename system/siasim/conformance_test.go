package siasim_test

import (
	"net/http/httptest"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/siad"
	"github.com/plimsoll-project/plimsoll/system/siasim"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

const variable = "PLIMSOLL_TEST_SIASIM"

// TestConformance runs the conformance suite on the adapter with a simulator, over real sockets.
func TestConformance(t *testing.T) {
	t.Setenv(variable, siasim.Password)
	truths := systemtest.Truths{Slow: true, Without: []string{"follow"}} // no chain was requested
	systemtest.Run(t, systemtest.Suite{System: siad.System{}, Write: true, Truths: truths,
		Attach: func(t *testing.T) (system.Options, func()) {
			s := siasim.New(siasim.Config{
				Data: 1, Parity: 2, Hosts: 4, Contracts: 3, Sector: 256 << 10, Rate: 200e6,
			})
			t.Cleanup(s.Close)
			server := httptest.NewServer(s.Siad())
			t.Cleanup(server.Close)
			return system.Options{"url": server.URL, "password": variable}, server.Close
		}})
}

func TestMain(m *testing.M) { systemtest.Main(m) }
