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

func setFlag(c *cobra.Command, set *[]string) {
	c.Flags().StringArrayVar(set, "set", nil, "change a key of the experiment: KEY=VALUE, repeatable")
}

// load reads a preset or an experiment file ("-": standard input), with the --set
// changes, and returns how to run it. name is for the run directory.
func (p *program) load(arg string, set []string) (cfg engine.Config, name string, err error) {
	src, file, name, err := p.source(arg)
	if err != nil {
		return cfg, "", err
	}
	cfg.Base = baseOf(arg)
	if cfg.Plan, err = planOf(file, src, set, cfg.Base); err != nil {
		return cfg, "", err
	}
	fill(&cfg)
	return cfg, name, nil
}

// planOf is the plan of an experiment file's text, whose relative paths start at base.
func planOf(file string, src []byte, set []string, base string) (*experiment.Plan, error) {
	e, err := experiment.ParseKnowing(file, src, set, catalog(), known())
	if err == nil {
		err = scenario.FindRequestLog(e, base)
	}
	if err != nil {
		return nil, ui.Exit(ui.CodeUsage, err)
	}
	plan, err := e.Plan()
	return plan, ui.Exit(ui.CodeUsage, err)
}

func (p *program) source(arg string) (src []byte, file, name string, err error) {
	if arg == "-" {
		src, err = io.ReadAll(io.LimitReader(p.stdin, 16<<20))
		return src, "standard input", "experiment", err
	}
	if preset, err := presets.Get(arg); err == nil {
		return preset.Source, "preset " + arg, arg, nil
	}
	src, err = os.ReadFile(arg)
	if errors.Is(err, fs.ErrNotExist) {
		hint := "presets: " + strings.Join(presetNames(), ", ")
		if near := suggest.Nearest(arg, presetNames()); near != "" {
			hint = "did you mean the preset `" + near + "`? plimsoll presets lists all"
		}
		return nil, "", "", usage(fmt.Errorf("%s is neither a preset nor a file", arg), hint)
	}
	if err != nil {
		return nil, "", "", ui.Exit(ui.CodeUsage, err)
	}
	base := filepath.Base(arg)
	return src, arg, strings.TrimSuffix(base, filepath.Ext(base)), nil
}

func presetNames() []string {
	var names []string
	for _, p := range presets.List() {
		names = append(names, p.Name)
	}
	return names
}

// baseOf is the directory that relative paths of an experiment start at: that of
// its file, else the working directory.
func baseOf(arg string) string {
	dir := "."
	if _, err := presets.Get(arg); err != nil && arg != "-" {
		dir = filepath.Dir(arg)
	}
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// catalog is the systems that an experiment file may name.
func catalog() experiment.Catalog {
	var c experiment.Catalog
	for _, s := range all.All() {
		info := s.Info()
		spec := experiment.SystemSpec{
			Name: info.Name, Baseline: info.Baseline,
			HTTP: info.Able("http"), Spreads: info.Able("spread"),
			Follows: info.Able("follow"),
		}
		for _, m := range info.Modes {
			spec.Modes = append(spec.Modes, string(m))
		}
		for _, o := range info.Options {
			spec.Options = append(spec.Options, experiment.OptionSpec(o))
		}
		c = append(c, spec)
	}
	return c
}

// known is what a file may name beside systems.
func known() experiment.Known {
	return experiment.Known{
		Preconditions: engine.Skippable(),
		Metrics: func(name string) []gate.Metric {
			return analysis.GateMetrics(scenarios.ByName(name).Metrics())
		},
	}
}
