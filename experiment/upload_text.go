package experiment

import (
	"fmt"
	"strings"
)

// text is the data set in words.
func (p *Plan) dataText() string {
	d := p.Experiment.Data
	var text string
	switch {
	case p.Experiment.Scenario == "collect":
		return "none: nothing is stored"
	case d.Directory != "":
		text = "the files below " + d.Directory
	case d.Trace != "":
		text = "objects of the sizes in " + d.Trace
	case d.Mix != "":
		text = plural(d.Objects, "object") + ": " + d.Mix
	case d.Spread != "":
		text = plural(d.Objects, "object") + " of " + d.Spread + ", log-uniform"
	case len(d.Size) > 0:
		text = plural(d.Objects, "object") + " of " + levels(d.Size)
	default:
		return "the systems' own objects"
	}
	if d.Copies > 1 {
		text += fmt.Sprintf("; %d copies", d.Copies)
	}
	if d.Compressible > 0 {
		text += "; " + d.Compressible.String() + " of each compresses"
	}
	if d.Duplicate > 0 {
		text += "; " + d.Duplicate.String() + " are duplicates"
	}
	return text
}

func (u *Upload) text() string {
	parts := []string{
		numbers(u.Concurrency) + " at a time, each until it is " + map[string]string{
			"auto": "durable, where the system says when it is, else accepted", "accepted": "accepted", "durable": "durable"}[u.Slot],
		"done when all are " + u.Until,
		fmt.Sprintf("%d retries after %s, five times as long each", u.Retries, u.Backoff),
		"a poll every " + u.Poll.String(),
	}
	if u.Verify > 0 {
		parts = append(parts, u.Verify.String()+" fetched and compared at the end")
	}
	if u.After == "remove" {
		parts = append(parts, "objects removed at the end")
	}
	if u.Price != "" {
		parts = append(parts, "at "+u.Price)
	}
	return strings.Join(parts, "; ")
}

// text is what must hold before the first upload; empty: nothing.
func (n Need) text() string {
	var parts []string
	if n.Balance != "" {
		parts = append(parts, "a balance of "+n.Balance)
	}
	if n.Contracts > 0 {
		parts = append(parts, plural(n.Contracts, "contract"))
	}
	if n.Allowance != "" {
		parts = append(parts, "the budget set to "+strings.Replace(n.Allowance, "all", "the whole balance", 1))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + "; waited for at most " + n.Wait.String()
}

func (c *Collect) text() string {
	text := "a poll every " + c.Every.String()
	if c.For > 0 {
		text += " for " + c.For.String()
	}
	if c.Price != "" {
		text += "; at " + c.Price
	}
	return text
}

// text are the conditions that end a run early.
func (x Exit) text(uploads bool) string {
	var parts []string
	add := func(is bool, text string) {
		if is {
			parts = append(parts, text)
		}
	}
	add(x.MaxRuntime > 0, "run "+x.MaxRuntime.String())
	add(x.MaxBytes > 0, "transfer "+x.MaxBytes.String())
	add(x.MaxErrors > 0, "errors "+x.MaxErrors.String())
	add(x.MaxSpend != "", "spend "+x.MaxSpend)
	if f := x.Floor; f != nil {
		add(true, fmt.Sprintf("progress below %s in %s", f.Bytes, f.Window))
	}
	if s := x.Steady; s != nil {
		add(true, fmt.Sprintf("steady within %s over %d × %s", s.Within, s.Windows, s.Window))
	}
	add(uploads && x.StorageFull, "storage full")
	return strings.Join(parts, ", ")
}
