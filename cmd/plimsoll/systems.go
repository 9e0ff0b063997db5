package main

import (
	"context"
	"fmt"
	"io"
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
	var sizes bool
	c := &cobra.Command{
		Use:   "systems [NAME]",
		Short: "list storage systems, what each can do and what is missing here",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return p.listSystems(c.Context(), sizes)
			}
			s, ok := all.ByName(args[0])
			if !ok {
				var names []string
				for _, s := range all.All() {
					names = append(names, s.Info().Name)
				}
				return usage(fmt.Errorf("there is no system %q", args[0]), "systems: "+strings.Join(names, ", "))
			}
			return writeSystem(p.stdout, s, statusOf(c.Context(), s, sizes))
		},
	}
	c.Flags().BoolVar(&sizes, "sizes", false, "ask the registries how large the container images are that can be installed")
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
	Image    string           `json:"image,omitempty"`       // that it is started from
	Bytes    int64            `json:"image_bytes,omitempty"` // that were transferred for it
}

func (p *program) listSystems(ctx context.Context, sizes bool) error {
	systems := all.All()
	list := make([]status, len(systems))
	var asked sync.WaitGroup
	for i, s := range systems {
		asked.Go(func() { list[i] = statusOf(ctx, s, sizes) })
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

func statusOf(ctx context.Context, s system.System, sizes bool) status {
	info := s.Info()
	st := status{Name: info.Name, Summary: info.Summary, Modes: info.Modes, Can: info.Can, Embedded: info.Embedded,
		Install: info.Install}
	store, err := image.Default()
	if err == nil {
		if i, err := store.Installed(info.Name); err == nil {
			st.Image, st.Bytes = i.String(), i.Size
		}
	}
	if info.Image != "" {
		what := "container image " + info.Image
		if sizes && err == nil {
			what += ", " + sizeOf(ctx, store, info.Image)
		}
		st.Install = fmt.Sprintf("plimsoll systems install %s (%s), or %s", info.Name, what, info.Install)
	}
	if opt, err := info.Fill(nil); err == nil && info.Has(system.Start) {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		st.Missing = system.Check(ctx, s, opt)
		for i := range st.Missing {
			if st.Missing[i].Hint == info.Install {
				st.Missing[i].Hint = st.Install
			}
		}
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
		can := fold(st.Can, canWidth)
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", st.Name, joinModes(st.Modes), here(st), can[0])
		for _, more := range can[1:] {
			fmt.Fprintf(tw, "\t\t\t%s\n", more)
		}
	}
	tw.Flush()
	for _, st := range list {
		for _, m := range st.Missing {
			fmt.Fprintf(p.stdout, "\n%s\n", p.wrap(st.Name+": "+strings.TrimPrefix(m.What, st.Name+": "), 2))
			if m.Hint != "" {
				fmt.Fprintf(p.stdout, "  %s\n", p.wrap("to get it: "+m.Hint, 4))
			}
		}
	}
	fmt.Fprintln(p.stdout, "\nplimsoll systems NAME: what one is, how to get it and its options."+
		"\nplimsoll systems --sizes: also how large the container images are.")
}

// fold breaks words into lines of at most width, or of one word.
func fold(words []string, width int) []string {
	lines := []string{""}
	for _, word := range words {
		at := &lines[len(lines)-1]
		switch {
		case *at == "":
			*at = word
		case len(*at)+1+len(word) > width:
			lines = append(lines, word)
		default:
			*at += " " + word
		}
	}
	return lines
}

// wrap breaks a text into lines of the terminal that results go to; those after the
// first are indented. Elsewhere it stays one line.
func (p *program) wrap(text string, indent int) string {
	if p.ui.Width() == 0 {
		return text
	}
	return strings.Join(fold(strings.Fields(text), p.ui.Width()-1-indent), "\n"+strings.Repeat(" ", indent))
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
		if text == "" {
			return
		}
		for i, line := range fold(strings.Fields(text), systemsWidth-len("to get it: ")) {
			if i > 0 {
				label = ""
			}
			fmt.Fprintf(w, "%-11s%s\n", label, line)
		}
	}
	labelled("system:", info.Name+": "+info.Summary)
	labelled("here:", strings.TrimSpace(here(st)+" "+st.Image))
	if st.Embedded || len(st.Missing) > 0 || !info.Has(system.Start) {
		labelled("to get it:", st.Install)
	}
	labelled("how:", joinModes(info.Modes))
	labelled("can:", strings.Join(info.Can, " "))
	if info.Has(system.Start) {
		after := "begins anew with a fresh deployment: this system cannot be brought up again with its data"
		if _, ok := s.(system.Reviver); ok {
			after = "goes on: the system is brought up again with its data"
		}
		labelled("resume:", "when started here, a load test that was cut off "+after)
	}
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
		for i, line := range fold(strings.Fields(o.Name+" ("+kind+")"), systemsWidth-2) {
			fmt.Fprintf(w, "%*s%s\n", 2+2*min(i, 1), "", line)
		}
		for _, line := range fold(strings.Fields(o.Help), systemsWidth-6) {
			fmt.Fprintf(w, "      %s\n", line)
		}
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
		fmt.Fprintf(p.stdout, "%-*s%s\n", indent, pr.Name, p.wrap(pr.Summary, indent))
	}
	_, err := fmt.Fprintln(p.stdout, "\nplimsoll presets NAME prints one; plimsoll run NAME runs it.")
	return err
}
