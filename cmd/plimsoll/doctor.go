package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/remote"
	"github.com/plimsoll-project/plimsoll/testbed"
)

func (p *program) doctorCommand() *cobra.Command {
	var set []string
	var on place
	c := verb("doctor [PRESET|FILE]", cobra.MaximumNArgs(1), func(c *cobra.Command, args []string) error {
		arg := "quickstart"
		if len(args) == 1 {
			arg = args[0]
		}
		cfg, _, err := p.load(arg, set)
		if err != nil {
			return err
		}
		if on.On != "" {
			// What a run on other machines needs before it is started there, where the rest is checked.
			place, err := on.open(p.note)
			if err != nil {
				return ui.Exit(ui.CodeUsage, err)
			}
			cfg.Clients = 1
			return p.sayProblems(arg, remote.Check(c.Context(), place, cfg))
		}
		if os.Getenv(testbed.EnteredVariable) == "" { // inside the namespaces, no registry can be reached
			if err := p.sayMissingImages(c.Context(), cfg.Plan); err != nil {
				return err
			}
		}
		if code, done, err := enterNamespace(cfg.Plan); done || err != nil {
			return exitWith(code, err)
		}
		removed, err := testbed.CleanDead()
		if err != nil {
			p.ui.Say("note: cannot remove everything that crashed runs left: %v", err)
		}
		for _, r := range removed {
			p.ui.Say("removed what a crashed run left, and its directory %s", r)
		}
		return p.sayProblems(arg, append(engine.Preconditions(c.Context(), cfg), engine.Busy(c.Context(), cfg)...))
	})
	setFlag(c, &set)
	on.placeFlags(c)
	return c
}

// sayProblems lists problems, and returns an error if one of them is blocking.
func (p *program) sayProblems(arg string, problems []engine.Problem) error {
	for _, pr := range problems {
		if p.ui.JSON {
			p.ui.Emit(pr)
			continue
		}
		mark := "note"
		if pr.Blocking {
			mark = "FAIL"
		}
		p.prose(mark+"  ", "      ", pr.Name+": "+pr.What)
		p.prose("      ", "      ", pr.Hint)
	}
	if n := len(engine.Blocking(problems)); n > 0 {
		return ui.Exit(ui.CodePreconditions, fmt.Errorf("%s cannot run here; failed preconditions: %d", arg, n))
	}
	if !p.ui.JSON {
		fmt.Fprintf(p.stdout, "%s can run here\n", arg)
	}
	return nil
}
