package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/report"
)

func (p *program) predictCommand() *cobra.Command {
	var set, systems []string
	var check bool
	c := &cobra.Command{
		Use:   "predict DIR [--set KEY=VALUE …]",
		Short: "predict, from the models of a run, what a cell that was not run would give",
		Args:  exactly(1, "one run directory"),
		RunE: func(c *cobra.Command, args []string) error {
			if check && len(set) > 0 {
				return ui.Exit(ui.CodeUsage, errors.New("--check predicts the cells that were run: --set has no place there"))
			}
			return p.predict(args[0], set, systems, check)
		},
	}
	c.Flags().StringArrayVar(&set, "set", nil, "a level of a factor, or several, such as data.size=300kB, size=300kB or rtt=40ms,80ms (again for more factors)")
	c.Flags().StringArrayVar(&systems, "system", nil, "only for this system (again for more)")
	c.Flags().BoolVar(&check, "check", false, "instead, leave each cell out in turn and predict it from the others")
	return c
}

func (p *program) predict(dir string, set, systems []string, check bool) error {
	r, err := openRun(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	var said []*report.Prediction
	if check {
		one, failed := report.CheckPredictions(r)
		said, err = []*report.Prediction{one}, failed
	} else {
		said, err = report.Predict(r, report.Combinations(set)...)
	}
	for i := 0; err == nil && i < len(said); i++ {
		err = said[i].Only(systems)
	}
	if err != nil {
		return ui.Exit(ui.CodeUsage, err)
	}
	switch {
	case p.ui.JSON:
		var b bytes.Buffer
		if err := report.WritePredictionsJSON(&b, said); err != nil {
			return err
		}
		p.ui.Emit(json.RawMessage(b.Bytes()))
	case check:
		err = said[0].WriteText(ui.Plain(p.stdout), p.ui.Width())
	default:
		err = report.WritePredictions(ui.Plain(p.stdout), said, p.ui.Width())
	}
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(said, func(p *report.Prediction) bool { return !p.Refused() }) {
		// Why not, and what would measure it, is told above.
		return ui.Exit(ui.CodeUndecided, errors.New("no model of this run supports what was asked for"))
	}
	return nil
}
