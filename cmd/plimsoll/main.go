// Command plimsoll measures decentralized storage: it starts real nodes or
// attaches to running ones, puts emulated and verified links between them, runs
// a reproducible experiment, and writes one page that says how fast, how
// efficient, how costly and how reliable the storage is, and why.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	// certificates of authorities where the machine has none, as in our image
	_ "golang.org/x/crypto/x509roots/fallback"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
)

// version is set by release builds; `go install` uses what the toolchain recorded.
var version = ""

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the whole program as a function, so that tests can call it.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	goodbye := "\nstopping (once more to stop at once)\n"
	if len(args) > 0 && args[0] == "node" {
		goodbye = "" // the run that stops this part prints the message
	}
	ctx, cancel := interruptible(context.Background(), func() { io.WriteString(stderr, goodbye) })
	defer cancel()
	p := &program{ui: ui.New(stdout, stderr), stdin: stdin, stdout: stdout, stderr: stderr}
	root := p.root()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := coded(root.ExecuteContext(ctx))
	if err != nil && strings.HasPrefix(err.Error(), "unknown command") {
		err = usage(err, "see plimsoll --help")
	}
	if err != nil {
		p.fail(err)
	}
	return int(ui.ExitCode(err))
}

// fail writes an error; with --json the mistakes of a file are one object each, like their hints.
func (p *program) fail(err error) {
	mistakes, is := errors.AsType[experiment.Errors](err)
	if !p.ui.JSON || !is {
		p.ui.Error(err)
		return
	}
	for _, m := range mistakes {
		bare := *m
		bare.Hint = ""
		p.ui.Error(ui.WithHint(&bare, m.Hint))
	}
}

// coded sets the exit status for a full disk, an unwritable run directory, and a mistake in an
// experiment file or --set, wherever it occurred.
func coded(err error) error {
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	switch {
	case (full || errors.As(err, new(*record.WriteError))) && ui.ExitCode(err) != ui.CodeCorruption:
		return ui.Exit(ui.CodeUnwritable, err)
	case errors.As(err, new(*experiment.Error)) && ui.ExitCode(err) == ui.CodeInternal:
		return ui.Exit(ui.CodeUsage, err)
	}
	return err
}

// interruptible returns a context that the first Ctrl-C (or SIGTERM) cancels, which ends the
// run cleanly; the second one ends the program at once. Signals at the same time count as one,
// because timeout(1) sends its signal to the process and to its group.
func interruptible(parent context.Context, say func()) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	ended := context.AfterFunc(ctx, func() {
		say()
		time.Sleep(sameMoment)
		stop() // the next signal is not caught
	})
	return ctx, func() { ended(); stop() }
}

const sameMoment = 200 * time.Millisecond

// program is the environment of every command.
type program struct {
	ui             *ui.UI
	stdin          io.Reader
	stdout, stderr io.Writer
}

func (p *program) root() *cobra.Command {
	hello := ""
	root := &cobra.Command{
		Use:           "plimsoll",
		Version:       programVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(p.stdout, hello+"\n")
			return err
		},
	}
	root.PersistentFlags().BoolVar(&p.ui.JSON, "json", false, "print one JSON object per line instead of text")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage(err, "see "+c.CommandPath()+" --help")
	})
	for _, g := range []struct {
		id, title string
		verbs     []*cobra.Command
	}{
		{"measure", "Measure:", []*cobra.Command{p.runCommand(), p.benchCommand(), p.resumeCommand(), p.planCommand(),
			p.presetsCommand(), p.doctorCommand(), p.collectCommand()}},
		{"read", "Read results:", []*cobra.Command{p.reportCommand(), p.compareCommand(), p.serveCommand(),
			p.exportCommand(), p.importCommand()}},
		{"with", "Prepare:", []*cobra.Command{p.systemsCommand(), p.schemaCommand(), p.dataCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.verbs {
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	explain(root)
	hello, root.Long = root.Long, "" // --help lists all commands
	root.AddCommand(p.nodeCommand())
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.Args = func(_ *cobra.Command, verb []string) error { _, _, err := root.Find(verb); return err }
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	return root
}

//go:embed help.txt
var helpText string

// explain sets the help of a command and its subcommands: summary, description and examples.
func explain(c *cobra.Command) {
	_, words, _ := strings.Cut("\n"+helpText, "\n# "+c.Name()+"\n")
	words, _, _ = strings.Cut(words, "\n# ")
	words, c.Example, _ = strings.Cut(strings.TrimSpace(words), "\n\nExamples:\n")
	c.Short, c.Long, _ = strings.Cut(words, "\n\n")
	for _, below := range c.Commands() {
		explain(below)
	}
}

// verb returns a command, without the words of its help.
func verb(use string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Args: args, RunE: run}
}

func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// exactly is cobra.ExactArgs with our exit status and a hint.
func exactly(n int, what string) cobra.PositionalArgs { return between(n, n, what) }

// atLeast is cobra.MinimumNArgs with our exit status and a hint.
func atLeast(n int, what string) cobra.PositionalArgs { return between(n, math.MaxInt, what) }

func between(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if least <= len(args) && len(args) <= most {
			return nil
		}
		return usage(
			fmt.Errorf("%s wants %s", c.CommandPath(), what),
			strings.TrimSuffix(c.UseLine(), " [flags]")+"; see "+c.CommandPath()+" --help")
	}
}

// result writes the result of a command: an object with --json, otherwise a line.
func (p *program) result(object any, line string, args ...any) error {
	if p.ui.JSON {
		p.ui.Emit(object)
		return nil
	}
	_, err := fmt.Fprintf(ui.Plain(p.stdout), line+"\n", args...)
	return err
}

// usage returns the error for a mistake on the command line or in a file, with a hint.
func usage(err error, hint string) error { return ui.Exit(ui.CodeUsage, ui.WithHint(err, hint)) }
