package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/experiment"
)

func (p *program) benchCommand() *cobra.Command {
	var concurrency, duration, size, out string
	var set []string
	var print bool
	var options runOptions
	c := verb("bench URL", exactly(1, "one URL"), func(c *cobra.Command, args []string) error {
		address := args[0]
		if !strings.Contains(address, "://") {
			address = "http://" + address
		}
		src := fmt.Appendf(nil, benchExperiment, address, size, strings.ReplaceAll(concurrency, ",", ", "), duration)
		if print && len(set) > 0 {
			return usage(errors.New("--print does not write --set into the file"),
				"leave out --set here, and give it to plimsoll run with the file")
		}
		cfg, err := configOf("plimsoll bench", src, set, ".")
		mistakes, _ := errors.AsType[experiment.Errors](err)
		for _, m := range mistakes {
			if flag := benchLines[m.Line]; flag != "" {
				m.File, m.Line = flag, 0
			}
		}
		if err != nil {
			return err
		}
		if print {
			_, err := p.stdout.Write(src)
			return err
		}
		host := "endpoint"
		if u, err := url.Parse(address); err == nil && u.Hostname() != "" {
			host = strings.NewReplacer(":", "-", "/", "-").Replace(u.Host)
		}
		return p.perform(c, options, "bench-"+host, out, cfg)
	})
	f := c.Flags()
	f.StringVarP(&concurrency, "concurrency", "c", "1,10,100", "requests at a time, one or several numbers")
	f.StringVarP(&duration, "duration", "d", "10s", "length of each trial")
	f.StringVar(&size, "range", "whole", "bytes of each request, such as 1MiB; whole: the whole object")
	f.BoolVar(&print, "print", false, "print the experiment file, and run nothing")
	setFlag(c, &set)
	outFlag(c, &out, "bench-HOST")
	options.flags(c)
	options.runFlags(c)
	return c
}

// benchExperiment is the file that says the same: of what URL, range, concurrency and duration.
const benchExperiment = `# How many concurrent retrievals can it take?
scenario: retrieve
systems:
  - use: http
    with: {urls: %q}
retrieve:
  range: %s
  concurrency: [%s]
  duration: %s
`

// benchLines holds where the values on the lines of benchExperiment come from.
var benchLines = map[int]string{5: "URL", 7: "--range", 8: "-c", 9: "-d"}
