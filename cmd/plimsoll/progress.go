package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
)

// progress shows a run: one redrawn line on a terminal, a plain line per block
// elsewhere, one object per trial with --json.
type progress struct {
	ui *ui.UI
	p  *experiment.Plan

	mu       sync.Mutex
	n, total int
	current  string
	blocks   int           // of the chain that the trial follows; 0: it follows none
	perTrial time.Duration // running mean of a trial with all that surrounds it
	trials   int
	first    time.Time
	block    int
	invalid  int
	skipped  map[string]bool // cells, by ID
	dir      string
	busy     busy
	far      far // of a trial that goes on for long
	resumed  bool
}

var _ engine.Progress = (*progress)(nil)

func newProgress(u *ui.UI, plan *experiment.Plan, dir string, resumed bool) *progress {
	return &progress{ui: u, p: plan, dir: dir, resumed: resumed, block: -1 << 30, skipped: map[string]bool{}}
}

// Start says what is about to happen.
func (p *progress) Start() {
	dir := p.dir
	e := p.p.Estimate
	var systems []string
	for _, s := range p.p.Experiment.Systems {
		systems = append(systems, s.Name)
	}
	if p.ui.JSON {
		p.ui.Emit(map[string]any{"type": "plan", "dir": dir, "cells": len(p.p.Cells), "estimate": e, "hash": p.p.Hash})
		return
	}
	if p.resumed { // the whole run's estimate would mislead
		p.ui.Say("%s: going on in %s; the plan has %s of %s", p.title(), dir, trials(e.Trials), strings.Join(systems, ", "))
		return
	}
	p.ui.Say("%s: %s (%d warm-up + %d of each cell) of %s", p.title(), trials(e.Trials), p.p.Warmup, p.p.Blocks, strings.Join(systems, ", "))
	p.ui.Say("estimate: %s; recorded in %s", p.p.EstimateText(), dir)
	if n := len(p.p.Skipped); n > 0 {
		p.ui.Say("%d cells are left out because they would take too long; plimsoll plan lists them", n)
	}
	for _, w := range p.p.Warnings() {
		p.ui.Say("warning: %s", w)
	}
}

func trials(n int) string {
	if n == 1 {
		return "1 trial"
	}
	return fmt.Sprintf("%d trials", n)
}

func (p *progress) title() string {
	if t := p.p.Experiment.Title; t != "" {
		return t
	}
	return p.p.Experiment.Scenario
}

func (p *progress) Phase(what string) {
	if p.ui.JSON {
		p.ui.Emit(map[string]any{"type": "phase", "text": what})
		return
	}
	if !p.ui.Terminal() {
		p.ui.Say("%s", what)
	}
	p.ui.Progress(what)
}

func (p *progress) Note(text string) { p.ui.Say("note: %s", text) }

func (p *progress) Begin(n, total int, cell experiment.Cell, block int, warmup bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.first.IsZero() {
		p.first = now
	}
	p.n, p.total = n, total
	p.current = describeCell(cell)
	p.blocks = 0
	if cell.Sync != nil {
		p.blocks = cell.Sync.Blocks
	}
	if block != p.block {
		p.block = block
		if !p.ui.Terminal() && !p.ui.JSON {
			p.ui.Say("%s", p.blockLine(block))
		}
	}
	p.draw("")
}

func (p *progress) blockLine(block int) string {
	if block < 0 {
		return fmt.Sprintf("warm-up block %d of %d", block+p.p.Warmup+1, p.p.Warmup)
	}
	return fmt.Sprintf("block %d of %d%s", block+1, p.p.Blocks, p.left(" (", " left)"))
}

func (p *progress) Load(ops, bytes int64, elapsed time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.blocks > 0 {
		p.draw(fmt.Sprintf(" · block %d of %d, %s", ops, p.blocks, experiment.RoughBytes(float64(bytes))))
		return
	}
	p.draw(fmt.Sprintf(" · %d ops, %s", ops, experiment.RoughBytes(float64(bytes))))
}

func (p *progress) End(t record.Trial, cell experiment.Cell) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trials++
	p.perTrial = time.Since(p.first) / time.Duration(p.trials)
	p.endFar(t, cell)
	p.busy.count(t)
	if p.ui.JSON {
		p.ui.Emit(map[string]any{"type": "trial", "cell": cell.ID, "factors": cell.Factors, "trial": t})
		return
	}
	switch {
	case t.State == record.Skipped:
		if p.skipped[cell.ID] {
			return // it stays skipped, and has been said
		}
		p.skipped[cell.ID] = true
		p.ui.Say("%s is skipped: %s", p.current, t.Error)
	case t.State == record.Failed:
		p.ui.Say("%s could not be executed: %s", p.current, t.Error)
	case len(t.Invalid) > 0:
		p.invalid++
		if p.invalid <= maxInvalidLines {
			p.ui.Say("trial %d (%s) is invalid: %s", t.ID, p.current, strings.Join(t.Invalid, ", "))
		} else if p.invalid == maxInvalidLines+1 {
			p.ui.Say("more trials are invalid; the report lists them")
		}
	}
}

// maxInvalidLines keeps a busy machine from filling the terminal.
const maxInvalidLines = 5

func (p *progress) draw(tail string) {
	p.ui.Progress(fmt.Sprintf("%3d/%d  %s%s%s", p.n, p.total, p.current, tail, p.left("  ", " left")))
}

// left is the time still to go, from the trials so far or else from the plan,
// between before and after; empty when the plan cannot tell.
func (p *progress) left(before, after string) string {
	switch e := p.p.Estimate; {
	case p.trials >= 2:
		return before + experiment.RoughDuration((time.Duration(p.total-p.n+1) * p.perTrial).Seconds()) + after
	case e.Bound == experiment.Exact:
		return before + experiment.RoughDuration(e.Seconds) + after
	}
	return ""
}

func describeCell(c experiment.Cell) string {
	var parts []string
	for _, f := range c.Factors {
		if f.Path == "system" {
			parts = append(parts, f.Value)
		} else {
			parts = append(parts, f.Label+" "+f.Value)
		}
	}
	return strings.Join(parts, ", ")
}
