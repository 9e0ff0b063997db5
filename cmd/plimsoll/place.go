package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/remote"
	"github.com/plimsoll-project/plimsoll/remote/kubernetes"
	"github.com/plimsoll-project/plimsoll/remote/ssh"
)

// place is where a run is executed, if not on this machine.
type place struct {
	remote.Where // On, Image and Pack
	sync         time.Duration
}

func (e *place) flags(c *cobra.Command) {
	e.placeFlags(c)
	c.Flags().DurationVar(&e.sync, "sync", 5*time.Minute,
		"with --on: bring the run directory here this often; 0: at the end")
}

func (e *place) placeFlags(c *cobra.Command) {
	c.Flags().StringVar(&e.On, "on", "", "run on other machines: ssh:HOSTS.yaml or kubernetes[:CONTEXT[/NAMESPACE]]")
	c.Flags().StringVar(&e.Image, "image", "", "with --on kubernetes: a container image with this plimsoll (default "+
		kubernetes.Image+":VERSION)")
	c.Flags().BoolVar(&e.Pack, "pack", false, "with --on kubernetes: a node may have several machines")
}

// open opens the place that --on names, and makes e.On independent of the working directory.
func (e *place) open(note func(string)) (remote.Place, error) {
	kind, rest, _ := strings.Cut(e.On, ":")
	switch kind {
	case "ssh":
		file, err := filepath.Abs(rest)
		if err != nil {
			return nil, err
		}
		e.On = "ssh:" + file
		return ssh.Open(file)
	case "kubernetes":
		c, err := kubernetes.Open(rest, kubernetes.Options{Version: programVersion(), Image: e.Image, Pack: e.Pack,
			Note: note})
		if err != nil {
			return nil, err
		}
		e.On = "kubernetes:" + c.String()
		return c, nil
	}
	return nil, fmt.Errorf("--on %s: want ssh:HOSTS.yaml or kubernetes[:CONTEXT[/NAMESPACE]]", e.On)
}

func (p *program) note(text string) { p.ui.Say("note: %s", text) }
