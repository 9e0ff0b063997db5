package scp

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func TestConformance(t *testing.T) {
	systemtest.Run(t, systemtest.Suite{System: System{}, Daemon: "sshd"})
}

// TestClientIsNotOfTheImage: option "image" is for sshd alone.
func TestClientIsNotOfTheImage(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"scp", "named", "from-env"} {
		must(t, os.WriteFile(filepath.Join(dir, file), []byte("#!/bin/sh\n"), 0o700))
	}
	t.Setenv("PATH", dir)
	for _, c := range []struct{ option, env, want string }{
		{filepath.Join(dir, "named"), "from-env", "named"}, {"", "from-env", "from-env"}, {"", "", "scp"},
	} {
		t.Setenv("PLIMSOLL_SCP", c.env)
		if got, err := program(system.Options{"image": "nowhere/none", "scp": c.option}); err != nil ||
			got != filepath.Join(dir, c.want) {
			t.Errorf("option %q, variable %q: %q, %v", c.option, c.env, got, err)
		}
	}
}
