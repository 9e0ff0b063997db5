package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// lineEvery is the shortest interval of plain lines and JSON objects of a long trial.
const lineEvery = time.Minute

// progress shows the progress of a run: a redrawn line on a terminal, otherwise a line per block,
// or with --json an object per trial.
type progress struct {
	ui      *ui.UI
	plan    *experiment.Plan
	dir     string
	resumed bool

	mu        sync.Mutex
	n, total  int
	cell      experiment.Cell // of the current trial
	current   string          // the cell in words
	block     int
	trials    int
	first     time.Time
	mentioned map[string]bool // skipped cells and validity reasons that have been explained

	// For a long trial: its first and its latest state, and when the last plain line was
	// written.
	since, state scenario.State
	said         time.Time
}

// show is an [engine.Progress].
func (p *progress) show(e engine.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Kind {
	case engine.EventStart:
		p.start()
	case engine.EventPhase:
		p.phase(e.Text)
	case engine.EventNote:
		p.ui.Say("note: %s", e.Text)
	case engine.EventBegin:
		p.begin(e)
	case engine.EventLoad:
		p.load(e.Ops, e.Bytes)
	case engine.EventState:
		p.long(e.State)
	case engine.EventEnd:
		p.end(e.Trial)
	}
}

// start describes the plan.
func (p *progress) start() {
	e := p.plan.Estimate
	if p.ui.JSON {
		p.ui.Emit(map[string]any{"type": "plan", "dir": p.dir, "cells": len(p.plan.Cells), "estimate": e,
			"hash": p.plan.Hash})
		return
	}
	title := cmp.Or(p.plan.Experiment.Title, p.plan.Experiment.Scenario)
	trials, of := words.Plural(int64(e.Trials), "trial", "trials"), strings.Join(p.plan.Experiment.SystemNames(), ", ")
	if p.resumed { // the estimate of the whole run would be misleading
		p.ui.Say("%s: continuing in %s; the plan has %s of %s", title, p.dir, trials, of)
		return
	}
	p.ui.Say("%s: %s (%d warm-up + %d of each cell) of %s", title, trials, p.plan.Warmup, p.plan.Blocks, of)
	p.ui.Say("estimate: %s; recorded in %s", p.plan.EstimateText(), p.dir)
	for _, w := range p.plan.Warnings() {
		p.ui.Say("warning: %s", w)
	}
}

func (p *progress) phase(what string) {
	if p.ui.JSON {
		p.ui.Emit(map[string]any{"type": "phase", "text": what})
	} else if p.ui.Terminal() {
		p.ui.Progress(what)
	} else {
		p.ui.Say("%s", what)
	}
}

func (p *progress) begin(e engine.Event) {
	same := !p.first.IsZero() && e.Block == p.block
	if p.first.IsZero() {
		p.first = time.Now()
	}
	p.cell = p.plan.Cells[slices.IndexFunc(p.plan.Cells, func(c experiment.Cell) bool { return c.ID == e.Cell })]
	p.n, p.total, p.block, p.current = e.N, e.Total, e.Block, engine.Describe(p.cell)
	switch {
	case same || p.ui.Terminal() || p.ui.JSON:
	case e.Block < 0:
		p.ui.Say("warm-up block %d of %d", e.Block+p.plan.Warmup+1, p.plan.Warmup)
	default:
		p.ui.Say("block %d of %d%s", e.Block+1, p.plan.Blocks, p.left())
	}
	p.draw("")
}

func (p *progress) load(ops, bytes int64) {
	done := fmt.Sprintf("%d ops", ops)
	if chain := p.cell.Sync; chain != nil {
		done = fmt.Sprintf("block %d of %d", ops, chain.Blocks)
	}
	p.draw(" · " + done + ", " + words.Bytes(float64(bytes)))
}

func (p *progress) end(t record.Trial) {
	p.trials++
	if p.ui.JSON {
		p.ui.Emit(map[string]any{"type": "trial", "cell": p.cell.ID, "factors": p.cell.Factors, "trial": t})
	} else {
		p.sayEnd(t)
	}
	p.since, p.state, p.said = scenario.State{}, scenario.State{}, time.Time{}
}

// sayEnd prints what is notable about a finished trial.
func (p *progress) sayEnd(t record.Trial) {
	if p.state.At > 0 {
		line := p.current + ": " + p.longLine()
		for _, n := range t.Notes {
			if why, ok := strings.CutPrefix(n, record.NoteEnded); ok {
				line += " · ended: " + why
			}
		}
		p.ui.Say("%s", line)
	}
	switch {
	case t.State == record.Skipped && !p.mentioned[p.cell.ID]:
		p.mentioned[p.cell.ID] = true
		p.ui.Say("%s is skipped: %s", p.current, t.Error)
	case t.State == record.Failed:
		p.ui.Say("%s could not be executed: %s", p.current, t.Error)
	}
	for _, why := range t.Invalid {
		if !t.Warmup && !p.mentioned[why] { // so that a busy machine does not fill the terminal
			p.mentioned[why] = true
			p.ui.Say("trial %d (%s) is invalid, the first for this reason: %s: %s", t.ID, p.current, why,
				record.Meaning(why))
		}
	}
}

func (p *progress) draw(tail string) {
	p.ui.Progress(fmt.Sprintf("%3d/%d%s  %s%s", p.n, p.total, p.left(), p.current, tail))
}

// left returns the estimated remaining time, from the trials of this session or else from the plan,
// in brackets; empty if unknown.
func (p *progress) left() string {
	trials := float64(p.total - p.n + 1)
	switch e := p.plan.Estimate; {
	case p.trials >= 2:
		return " (" + words.Span(trials*time.Since(p.first).Seconds()/float64(p.trials)) + " left)"
	case e.Bound == experiment.Exact:
		return " (" + words.Span(trials*e.Seconds/float64(e.Trials)) + " left)"
	}
	return ""
}

// long shows the state of a long trial.
func (p *progress) long(s scenario.State) {
	if p.since.At == 0 {
		p.since = s
	}
	p.state = s
	if p.ui.Terminal() && !p.ui.JSON {
		p.ui.Progress(p.current + "  " + p.longLine())
		return
	}
	if time.Since(p.said) < lineEvery {
		return
	}
	p.said = time.Now()
	if !p.ui.JSON {
		p.ui.Say("%s: %s", p.current, p.longLine())
		return
	}
	objects, bytes := p.rates()
	line := map[string]any{
		"type": "state", "cell": p.cell.ID, "seconds": s.At.Seconds(), "objects": s.Objects, "accepted": s.Accepted,
		"durable": s.Durable, "failed": s.Failed, "refused": s.Refused, "bytes": s.Bytes,
		"objects_per_second": objects, "bytes_per_second": bytes,
	}
	if s.Spent != nil {
		line["spent"], line["decimals"] = s.Spent.String(), system.Decimals
	}
	p.ui.Emit(line)
}

// rates returns the objects and bytes accepted per second in this session; 0 if unknown.
func (p *progress) rates() (objects, bytes float64) {
	if seconds := (p.state.At - p.since.At).Seconds(); seconds >= 1 {
		objects = float64(p.state.Accepted-p.since.Accepted) / seconds
		bytes = float64(p.state.Bytes-p.since.Bytes) / seconds
	}
	return objects, bytes
}

// longLine returns the state of a long trial on one line.
func (p *progress) longLine() string {
	s := p.state
	if s.Objects == 0 {
		return "for " + words.Span(s.At.Seconds())
	}
	objects, bytes := p.rates()
	parts := []string{fmt.Sprintf("%d of %d objects accepted", s.Accepted, s.Objects)}
	add := func(when bool, format string, args ...any) {
		if when {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(s.Durable > 0, "%d durable", s.Durable)
	add(s.Failed+s.Refused > 0, "%d given up", s.Failed+s.Refused)
	add(true, "%s", words.Bytes(float64(s.Bytes)))
	add(bytes > 0, "%s/s", words.Bytes(bytes))
	if s.Spent != nil && s.Spent.Sign() != 0 {
		add(true, "%s spent since the trial began", system.Coins(s.Spent).FloatString(2))
	}
	rest := s.Objects - s.Accepted - s.Failed - s.Refused
	add(rest <= 0 && s.Failed+s.Refused == 0, "all stored")
	add(rest > 0 && objects > 0, "%s left", words.Span(float64(rest)/objects))
	return strings.Join(parts, " · ")
}
