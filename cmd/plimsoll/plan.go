package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/experiment/gate"
	"github.com/plimsoll-project/plimsoll/experiment/suggest"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/presets"
	"github.com/plimsoll-project/plimsoll/scenario"
	scenarios "github.com/plimsoll-project/plimsoll/scenario/all"
	"github.com/plimsoll-project/plimsoll/system/all"
)

func (p *program) planCommand() *cobra.Command {
	var set []string
	wants := exactly(1, "one preset or experiment file")
	c := verb("plan PRESET|FILE", wants, func(c *cobra.Command, args []string) error {
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
			return ui.Exit(ui.CodePreconditions, &scenario.PreconditionError{Problems: wrong})
		}
		return nil
	})
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
	return verb("presets [NAME]", cobra.MaximumNArgs(1), func(c *cobra.Command, args []string) error {
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
	})
}

func (p *program) schemaCommand() *cobra.Command {
	return verb("schema", cobra.NoArgs, func(c *cobra.Command, args []string) error {
		return p.print(experiment.Schema(engine.Catalog(all.All())))
	})
}

func setFlag(c *cobra.Command, set *[]string) {
	c.Flags().StringArrayVar(set, "set", nil, "change a key of the experiment: KEY=VALUE, repeatable")
}

// load reads a preset or an experiment file ("-": standard input), applies the --set changes,
// and returns the configuration of its run. name is for the run directory.
func (p *program) load(arg string, set []string) (cfg engine.Config, name string, err error) {
	var src []byte
	file, dir := arg, "."
	switch preset, unknown := presets.Get(arg); {
	case arg == "-":
		file, name = "standard input", "experiment"
		if src, err = io.ReadAll(io.LimitReader(p.stdin, 16<<20)); err == nil {
			err = stdinAgain(src)
		}
	case unknown == nil:
		src, file, name = preset.Source, "preset "+arg, arg
	default:
		src, err = os.ReadFile(arg)
		dir, name = filepath.Dir(arg), strings.TrimSuffix(filepath.Base(arg), filepath.Ext(arg))
	}
	if errors.Is(err, fs.ErrNotExist) {
		hint := "presets: " + strings.Join(presets.Names(), ", ")
		if near := suggest.Nearest(arg, presets.Names()); near != "" {
			hint = "did you mean the preset `" + near + "`? plimsoll presets lists all"
		}
		return cfg, "", usage(fmt.Errorf("%s is neither a preset nor a file", arg), hint)
	}
	if err != nil {
		return cfg, "", ui.Exit(ui.CodeUsage, err)
	}
	cfg, err = configOf(file, src, set, dir)
	return cfg, name, err
}

// configOf returns the configuration to run the text of an experiment file, whose relative
// paths start at dir.
func configOf(file string, src []byte, set []string, dir string) (cfg engine.Config, err error) {
	if cfg.Base, err = filepath.Abs(dir); err != nil {
		return cfg, err
	}
	e, err := experiment.ParseKnowing(file, src, set, engine.Catalog(all.All()), known())
	if err == nil {
		err = scenario.FindRequestLog(e, cfg.Base)
	}
	if err == nil {
		cfg.Plan, err = e.Plan()
	}
	if err == nil {
		fill(&cfg)
	}
	return cfg, ui.Exit(ui.CodeUsage, err)
}

// stdinAgain makes what was read from standard input its content again: the command may run again in
// namespaces.
func stdinAgain(text []byte) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	os.Stdin = r
	go func() { w.Write(text); w.Close() }()
	return nil
}

// known returns what a file may name besides systems.
func known() experiment.Known {
	return experiment.Known{
		Preconditions: engine.Skippable(),
		Metrics: func(name string) []gate.Metric {
			return analysis.GateMetrics(scenarios.ByName(name).Metrics())
		},
	}
}
