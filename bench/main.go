// Command bench compares parts of Plimsoll with other tools and prints tables. Each benchmark has a
// time limit.
//
//	go run ./bench -what httpload
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/plimsoll-project/plimsoll/httpload"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// loadCommand runs this binary as the load process of Plimsoll.
const loadCommand = "load"

var benchmarks = []struct {
	name, what string
	run        func(context.Context) error
}{
	{"httpload", "the load generator beside k6 and wrk, against nginx on loopback (about 2 minutes)", benchHTTPLoad},
	{"record", "10^8 operations recorded, read back and reported: cost, disk and memory (about a minute)", benchRecord},
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	if handled, err := testbed.ServeNode(context.Background(), os.Args[1:]); handled {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == loadCommand {
		return httpload.Serve(ctx, os.Stdin, os.Stdout)
	}
	what := flag.String("what", "all", "httpload, record or all")
	flag.Parse()
	known := false
	for _, b := range benchmarks {
		if *what != "all" && *what != b.name {
			continue
		}
		known = true
		fmt.Printf("# %s: %s\n\n", b.name, b.what)
		if err := b.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		fmt.Println()
	}
	if !known {
		return fmt.Errorf("no benchmark is called %q: -what is httpload, record or all", *what)
	}
	return nil
}
