package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
)

func (p *program) benchCommand() *cobra.Command {
	var ask endpoint
	var set []string
	var out string
	var print bool
	var manner manner
	c := &cobra.Command{
		Use:  "bench URL",
		Args: exactly(1, "one URL"),
		RunE: func(c *cobra.Command, args []string) error {
			if ask.url = args[0]; !strings.Contains(ask.url, "://") {
				ask.url = "http://" + ask.url
			}
			if print && len(set) > 0 {
				return usage(errors.New("--print does not write --set into the file"),
					"leave out --set here, and give it to plimsoll run with the file")
			}
			cfg, err := configOf("plimsoll bench", ask.experiment(), set, ".")
			if err != nil {
				return err
			}
			if print {
				_, err := p.stdout.Write(ask.experiment())
				return err
			}
			return p.perform(c, manner, "bench-"+ask.host(), out, cfg)
		},
	}
	f := c.Flags()
	f.StringVarP(&ask.concurrency, "concurrency", "c", "1,10,100", "requests at a time, one or several numbers")
	f.StringVarP(&ask.duration, "duration", "d", "10s", "length of each trial")
	f.StringVar(&ask.size, "range", "whole", "bytes of each request, such as 1MiB; whole: the whole object")
	f.BoolVar(&print, "print", false, "print the experiment file, and run nothing")
	setFlag(c, &set)
	outFlag(c, &out, "bench-HOST")
	manner.flags(c)
	manner.runFlags(c)
	return c
}

// endpoint is what bench measures, and how.
type endpoint struct{ url, concurrency, duration, size string }

// experiment is the file that says the same.
func (e endpoint) experiment() []byte {
	return fmt.Appendf(nil, `# How many concurrent retrievals can it take?
scenario: retrieve
systems:
  - use: http
    with: {urls: %q}
retrieve:
  range: %s
  concurrency: [%s]
  duration: %s
`, e.url, e.size, strings.Join(strings.Split(e.concurrency, ","), ", "), e.duration)
}

// host names the run directory.
func (e endpoint) host() string {
	u, err := url.Parse(e.url)
	if err != nil || u.Hostname() == "" {
		return "endpoint"
	}
	return strings.NewReplacer(":", "-", "/", "-").Replace(u.Host)
}
