package main

import (
	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/experiment/gate"
	scenarios "github.com/plimsoll-project/plimsoll/scenario/all"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/all"
)

// catalog is the systems that an experiment file may name.
func catalog() experiment.Catalog {
	var c experiment.Catalog
	for _, s := range all.All() {
		info := s.Info()
		spec := experiment.SystemSpec{
			Name: info.Name, Summary: info.Summary, Baseline: info.Baseline,
			HTTP: info.Able("http"), Spreads: info.Able("spread"),
			Follows: info.Able("follow"),
		}
		for _, m := range info.Modes {
			spec.Modes = append(spec.Modes, string(m))
		}
		for _, o := range info.Options {
			spec.Options = append(spec.Options, optionSpec(o))
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
			if s := scenarios.ByName(name); s != nil {
				return analysis.GateMetrics(s.Metrics())
			}
			return nil
		},
	}
}

func optionSpec(o system.Option) experiment.OptionSpec { return experiment.OptionSpec(o) }
