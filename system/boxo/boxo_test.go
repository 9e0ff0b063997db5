package boxo

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func TestConformance(t *testing.T) {
	for name, opt := range map[string]system.Options{
		"defaults":               nil,
		"CIDv0, protobuf leaves": {"cid_version": "0", "raw_leaves": "false", "retrieval_timeout": "30s", "max_requests": "4096"},
	} {
		t.Run(name, func(t *testing.T) {
			systemtest.Run(t, systemtest.Suite{System: System{}, Options: opt})
		})
	}
}
