package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/presets"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/all"
	"github.com/plimsoll-project/plimsoll/testbed/image"
)

func (p *program) systemsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "systems [NAME]",
		Short: "list storage systems, what each can do and what is missing here",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return p.listSystems(c.Context())
			}
			s, ok := all.ByName(args[0])
			if !ok {
				return usage(fmt.Errorf("there is no system %q", args[0]), "see plimsoll systems")
			}
			return writeSystem(p.stdout, s, statusOf(c.Context(), s))
		},
	}
	c.AddCommand(p.installCommand())
	return c
}

// status is what one system's check says about this machine.
type status struct {
	Name     string           `json:"name"`
	Summary  string           `json:"summary"`
	Modes    []system.Mode    `json:"modes"`
	Can      []string         `json:"can"`
	Missing  []system.Problem `json:"missing,omitempty"`
	Embedded bool             `json:"embedded"`
	Install  string           `json:"install,omitempty"`
	Image    string           `json:"image,omitempty"`         // that it is started from
	Bytes    int64            `json:"image_bytes,omitempty"`   // that were transferred for it
	Default  string           `json:"default_image,omitempty"` // that can be installed
}

func (p *program) listSystems(ctx context.Context) error {
	systems := all.All()
	list := make([]status, len(systems))
	var asked sync.WaitGroup
	for i, s := range systems {
		asked.Go(func() { list[i] = statusOf(ctx, s) })
	}
	asked.Wait()
	if p.ui.JSON {
		for _, st := range list {
			p.ui.Emit(st)
		}
		return nil
	}
	p.writeSystems(list)
	return nil
}

func statusOf(ctx context.Context, s system.System) status {
	info := s.Info()
	st := status{Name: info.Name, Summary: info.Summary, Modes: info.Modes, Can: info.Can, Embedded: info.Embedded,
		Install: info.Install}
	st.Default, _, _ = strings.Cut(info.Image, "@") // people do not read the digest
	if store, err := image.Default(); err == nil {
		if i, err := store.Installed(info.Name); err == nil {
			st.Image, st.Bytes = i.String(), i.Size
		}
	}
	if opt, err := info.Fill(nil); err == nil && info.Has(system.Start) {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		st.Missing = system.Check(ctx, s, opt)
	}
	return st
}

// systemsWidth is how many columns the list of systems and the page of one have.
const systemsWidth = 80

// writeSystems is a table: what a system can do is broken into lines.
func (p *program) writeSystems(list []status) {
	const canWidth = 38
	tw := tabwriter.NewWriter(p.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "SYSTEM\tHOW\tHERE\tCAN")
	for _, st := range list {
		can := words.Wrap("", "", strings.Join(st.Can, " "), canWidth)
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", st.Name, joinModes(st.Modes), here(st), can[0])
		for _, more := range can[1:] {
			fmt.Fprintf(tw, "\t\t\t%s\n", more)
		}
	}
	tw.Flush()
	for _, st := range list {
		for _, m := range st.Missing {
			fmt.Fprintln(p.stdout)
			p.prose("", "  ", st.Name+": "+strings.TrimPrefix(m.What, st.Name+": "))
			p.prose("  to get it: ", "    ", m.Hint)
		}
		if len(st.Missing) > 0 {
			p.prose("  image: ", "    ", st.Default)
		}
	}
	fmt.Fprintln(p.stdout, "\nplimsoll systems NAME: what one is, how to get it and its options.")
}

// prose prints a text, in lines of the terminal that results go to; elsewhere in one line.
func (p *program) prose(first, later, text string) {
	width := math.MaxInt
	if w := p.ui.Width(); w > 0 {
		width = w - 1
	}
	writeWrapped(p.stdout, first, later, text, width)
}

// writeWrapped prints a text in lines of a width; nothing where there is no text.
func writeWrapped(w io.Writer, first, later, text string, width int) {
	if text != "" {
		fmt.Fprintln(w, strings.Join(words.Wrap(first, later, text, width), "\n"))
	}
}

func here(st status) string {
	switch {
	case st.Embedded:
		return "built in"
	case len(st.Modes) == 1 && st.Modes[0] == system.Attach:
		return "by URL"
	case len(st.Missing) > 0:
		return "missing"
	case st.Image != "":
		return "image, " + words.Bytes(float64(st.Bytes))
	}
	return "installed"
}

func joinModes(modes []system.Mode) string {
	s := make([]string, len(modes))
	for i, m := range modes {
		s[i] = string(m)
	}
	return strings.Join(s, ", ")
}

// writeSystem says what a system is, in lines of 80 columns.
func writeSystem(w io.Writer, s system.System, st status) error {
	info := s.Info()
	labelled := func(label, text string) {
		writeWrapped(w, fmt.Sprintf("%-11s", label), strings.Repeat(" ", 11), text, systemsWidth)
	}
	labelled("system:", info.Name+": "+info.Summary)
	labelled("here:", strings.TrimSpace(here(st)+" "+st.Image))
	if st.Embedded || len(st.Missing) > 0 || !info.Has(system.Start) {
		labelled("to get it:", st.Install)
		labelled("image:", st.Default)
	}
	labelled("how:", joinModes(info.Modes))
	labelled("can:", strings.Join(info.Can, " "))
	if len(info.Options) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\noptions (under with: in the experiment file)")
	for _, o := range info.Options {
		kind := o.Type
		if len(o.Enum) > 0 {
			kind = strings.Join(o.Enum, "|")
		}
		def := o.Default
		if b, err := experiment.ParseBytes(def); err == nil && o.Type == "size" {
			def = b.String()
		}
		switch {
		case o.Required:
			kind += ", required"
		case def != "":
			kind += ", default " + def
		}
		writeWrapped(w, "  ", "    ", o.Name+" ("+kind+")", systemsWidth)
		writeWrapped(w, "      ", "      ", o.Help, systemsWidth)
	}
	return nil
}

func writePresets(p *program) error {
	if p.ui.JSON {
		for _, pr := range presets.List() {
			p.ui.Emit(map[string]string{"name": pr.Name, "summary": pr.Summary})
		}
		return nil
	}
	const indent = 21
	for _, pr := range presets.List() {
		p.prose(fmt.Sprintf("%-*s", indent, pr.Name), strings.Repeat(" ", indent), pr.Summary)
	}
	_, err := fmt.Fprintln(p.stdout, "\nplimsoll presets NAME prints one; plimsoll run NAME runs it.")
	return err
}
