// Command bench measures Plimsoll's own parts side by side with other tools and
// prints tables. Each benchmark is bounded in time.
//
//	go run ./bench -what httpload
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// benchmark is one entry of the table below.
type benchmark struct {
	name, what string
	run        func(context.Context) error
}

func benchmarks() []benchmark {
	return []benchmark{
		{"httpload", "the load generator beside k6 and wrk, against nginx on loopback (about 2 minutes)",
			benchHTTPLoad},
		{"record", "10^8 operations recorded, read back and reported: cost, disk and memory (about a minute)",
			benchRecord},
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == loadCommand {
		exit(serveLoad())
	}
	if handled, err := testbed.ServeNode(context.Background(), os.Args[1:]); handled {
		exit(err)
	}
	what := flag.String("what", "all", "comma-separated names of benchmarks, or all")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: bench [-what NAME,…]")
		for _, b := range benchmarks() {
			fmt.Fprintf(flag.CommandLine.Output(), "  %-10s %s\n", b.name, b.what)
		}
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	known := false
	for _, b := range benchmarks() {
		if *what != "all" && !contains(*what, b.name) {
			continue
		}
		known = true
		fmt.Printf("# %s: %s\n\n", b.name, b.what)
		if err := b.run(ctx); err != nil {
			exit(fmt.Errorf("%s: %w", b.name, err))
		}
		fmt.Println()
	}
	if !known {
		flag.Usage()
		os.Exit(2)
	}
}

func contains(list, name string) bool { return slices.Contains(strings.Split(list, ","), name) }

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
