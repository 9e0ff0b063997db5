package sftp

import (
	"os"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/system/systemtest/imagetest"
)

// From an image sshd does what it does from the machine's package.
func TestConformanceFromImage(t *testing.T) {
	systemtest.Need(t, "sshd", system.Check(t.Context(), System{}, nil))
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil && os.Geteuid() == 0 {
		t.Fatal(err)
	}
	img := imagetest.OfMachine(t, "/run/sshd", "/usr/sbin/sshd", "/usr/lib/openssh/sshd-session",
		"/usr/lib/openssh/sshd-auth", "/bin/bash", "/bin/sh")
	opt := system.Options{"image": systemtest.Pulled(t, img)}
	systemtest.Run(t, systemtest.Suite{System: System{}, Options: opt, Image: true, Daemon: "sshd"})
}
