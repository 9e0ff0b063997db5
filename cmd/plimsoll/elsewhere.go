package main

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/remote"
	"github.com/plimsoll-project/plimsoll/remote/kubernetes"
	"github.com/plimsoll-project/plimsoll/remote/ssh"
)

// elsewhere is where a run is executed, if not on this machine.
type elsewhere struct {
	place string
	image string // of pods
	pack  bool
	sync  time.Duration
}

func (e *elsewhere) flags(c *cobra.Command) {
	e.placeFlags(c)
	c.Flags().DurationVar(&e.sync, "sync", 5*time.Minute,
		"with --on: bring the run directory here this often; 0: at the end")
}

func (e *elsewhere) placeFlags(c *cobra.Command) {
	c.Flags().StringVar(&e.place, "on", "", "run on other machines: ssh:HOSTS.yaml or kubernetes[:CONTEXT[/NAMESPACE]]")
	c.Flags().StringVar(&e.image, "image", "", "with --on kubernetes: a container image with this plimsoll (default "+
		kubernetes.Image+":VERSION)")
	c.Flags().BoolVar(&e.pack, "pack", false, "with --on kubernetes: a node may have several machines")
}

// where is the place, with what other flags say of it.
func (e *elsewhere) where() string {
	q := url.Values{}
	if e.image != "" {
		q.Set("image", e.image)
	}
	if e.pack {
		q.Set("pack", "true")
	}
	if len(q) == 0 {
		return e.place
	}
	before, options, _ := strings.Cut(e.place, "?")
	if !strings.Contains(before, ":") {
		before += ":"
	}
	return before + "?" + strings.TrimPrefix(options+"&"+q.Encode(), "&")
}

// openPlace opens what --on names, and gives its name for other working directories.
func openPlace(on string, note func(string)) (remote.Place, string, error) {
	kind, rest, _ := strings.Cut(on, ":")
	switch kind {
	case "ssh":
		file, err := filepath.Abs(rest)
		if err != nil {
			return nil, "", err
		}
		place, err := ssh.Open(file)
		return place, "ssh:" + file, err
	case "kubernetes":
		c, err := kubernetes.Open(rest, kubernetes.Options{Version: programVersion(), Note: note})
		if err != nil {
			return nil, "", err
		}
		return c, "kubernetes:" + c.String(), nil
	}
	return nil, "", fmt.Errorf("--on %s: want ssh:HOSTS.yaml or kubernetes[:CONTEXT[/NAMESPACE]]", on)
}

func (p *program) note(text string) { p.ui.Say("note: %s", text) }
