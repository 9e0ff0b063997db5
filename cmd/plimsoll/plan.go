package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/experiment/suggest"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/presets"
	"github.com/plimsoll-project/plimsoll/system/all"
)

func (p *program) planCommand() *cobra.Command {
	var set []string
	c := &cobra.Command{
		Use:  "plan PRESET|FILE",
		Args: exactly(1, "one preset or experiment file"),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, _, err := p.load(args[0], set)
			if err != nil {
				return err
			}
			if p.ui.JSON {
				err = p.print(cfg.Plan.Marshal())
			} else {
				_, err = fmt.Fprint(ui.Plain(p.stdout), cfg.Plan.Text())
			}
			if err != nil {
				return err
			}
			if err := p.sayMissingImages(c.Context(), cfg.Plan); err != nil {
				return err
			}
			var wrong []engine.Problem
			for _, pr := range engine.PlanProblems(c.Context(), cfg) {
				switch {
				case !pr.Blocking:
				case !pr.Here:
					wrong = append(wrong, pr)
				case !p.ui.JSON: // the plan may be for another machine, or for later
					p.ui.Say("note: cannot run here yet: %s: %s", pr.Name, pr.What)
				}
			}
			if len(wrong) > 0 {
				return ui.Exit(ui.CodePreconditions, &engine.PreconditionError{Problems: wrong})
			}
			return nil
		},
	}
	setFlag(c, &set)
	return c
}

// print writes b and a newline, unless there is an error.
func (p *program) print(b []byte, err error) error {
	if err == nil {
		_, err = p.stdout.Write(append(b, '\n'))
	}
	return err
}

func (p *program) presetsCommand() *cobra.Command {
	return &cobra.Command{
		Use:  "presets [NAME]",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				for _, pr := range presets.List() {
					if p.ui.JSON {
						p.ui.Emit(map[string]string{"name": pr.Name, "summary": pr.Summary})
						continue
					}
					p.prose(fmt.Sprintf("%-21s", pr.Name), strings.Repeat(" ", 21), pr.Summary)
				}
				if p.ui.JSON {
					return nil
				}
				_, err := fmt.Fprintln(p.stdout, "\nplimsoll presets NAME prints one; plimsoll run NAME runs it.")
				return err
			}
			preset, err := presets.Get(args[0])
			if err != nil {
				return usage(err, suggest.DidYouMean(args[0], presets.Names()))
			}
			_, err = p.stdout.Write(preset.Source)
			return err
		},
	}
}

func (p *program) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:  "schema",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			return p.print(experiment.Schema(engine.Catalog(all.All())))
		},
	}
}
