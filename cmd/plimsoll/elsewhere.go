package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/remote"
	"github.com/plimsoll-project/plimsoll/remote/ssh"
)

// elsewhere is where a run is executed, if not on this machine.
type elsewhere struct {
	place string
	sync  time.Duration
}

func (e *elsewhere) flags(c *cobra.Command) {
	c.Flags().StringVar(&e.place, "on", "", "run on other machines: ssh:HOSTS.yaml")
	c.Flags().DurationVar(&e.sync, "sync", 5*time.Minute, "with --on: bring the run directory here this often; 0: at the end")
}

// openPlace opens what --on names, and gives its name for other working directories.
func openPlace(on string) (remote.Place, string, error) {
	kind, rest, _ := strings.Cut(on, ":")
	switch kind {
	case "ssh":
		file, err := filepath.Abs(rest)
		if err != nil {
			return nil, "", err
		}
		place, err := ssh.Open(file)
		return place, "ssh:" + file, err
	}
	return nil, "", fmt.Errorf("--on %s: want ssh:HOSTS.yaml", on)
}

// executeOn runs a plan elsewhere and reports on it here.
func (p *program) executeOn(ctx context.Context, cfg engine.Config, on elsewhere) error {
	place, name, err := openPlace(on.place)
	if err != nil {
		return ui.Exit(ui.CodeUsage, err)
	}
	l := &remote.Launcher{Place: place, On: name, Sync: on.sync}
	return p.execute(ctx, cfg, l.Run)
}

// planOf is the plan of a run directory; of a run elsewhere it is there from the beginning.
func planOf(dir string, on elsewhere) ([]byte, error) {
	if on.place != "" {
		if b, err := os.ReadFile(filepath.Join(dir, "plan.json")); err == nil {
			return b, nil
		}
	}
	r, err := openRun(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.Plan(), nil
}
