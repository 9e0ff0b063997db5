package sftp

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func TestConformance(t *testing.T) {
	systemtest.Run(t, systemtest.Suite{System: System{}, Daemon: "sshd"})
}
