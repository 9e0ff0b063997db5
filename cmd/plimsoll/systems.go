package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/presets"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/all"
)

func (p *program) systemsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "systems [NAME]",
		Short: "list the storage systems, what each can do and what it misses on this machine",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return p.listSystems(c.Context())
			}
			s, ok := all.ByName(args[0])
			if !ok {
				var names []string
				for _, s := range all.All() {
					names = append(names, s.Info().Name)
				}
				return ui.Exit(ui.CodeUsage, ui.WithHint(fmt.Errorf("there is no system %q", args[0]), "systems: "+strings.Join(names, ", ")))
			}
			return writeSystem(p.stdout, s.Info())
		},
	}
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
}

func (p *program) listSystems(ctx context.Context) error {
	var list []status
	for _, s := range all.All() {
		info := s.Info()
		st := status{Name: info.Name, Summary: info.Summary, Modes: info.Modes, Can: info.Can, Embedded: info.Embedded, Install: info.Install}
		if info.Has(system.Start) {
			opt, err := info.Fill(nil)
			if err == nil {
				checkCtx, cancel := context.WithTimeout(ctx, 30*time.Second)
				st.Missing = s.Check(checkCtx, opt)
				cancel()
			}
		}
		list = append(list, st)
	}
	if p.ui.JSON {
		for _, st := range list {
			p.ui.Emit(st)
		}
		return nil
	}
	w := tabwriter.NewWriter(p.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "SYSTEM\tHOW\tHERE\tCAN")
	for _, st := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", st.Name, joinModes(st.Modes), here(st), strings.Join(st.Can, " "))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, st := range list {
		for _, m := range st.Missing {
			fmt.Fprintf(p.stdout, "\n%s: %s", st.Name, m.What)
			if m.Hint != "" {
				fmt.Fprintf(p.stdout, " (%s)", m.Hint)
			}
		}
	}
	fmt.Fprintln(p.stdout, "\nplimsoll systems NAME tells the options of one.")
	return nil
}

func here(st status) string {
	switch {
	case st.Embedded:
		return "built in"
	case len(st.Modes) == 1 && st.Modes[0] == system.Attach:
		return "by URL"
	case len(st.Missing) > 0:
		return "missing"
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

func writeSystem(w io.Writer, info system.Info) error {
	fmt.Fprintf(w, "%s: %s\n", info.Name, info.Summary)
	if info.Install != "" {
		fmt.Fprintf(w, "to get it: %s\n", info.Install)
	}
	fmt.Fprintf(w, "how: %s   can: %s\n", joinModes(info.Modes), strings.Join(info.Can, " "))
	if len(info.Options) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\noptions (under with: in the experiment file)")
	tw := tabwriter.NewWriter(w, 2, 4, 2, ' ', 0)
	for _, o := range info.Options {
		kind := o.Type
		if len(o.Enum) > 0 {
			kind = strings.Join(o.Enum, "|")
		}
		def := o.Default
		if o.Required {
			def = "required"
		}
		fmt.Fprintf(tw, "  %s\t%s\t%s\t%s\n", o.Name, kind, def, o.Help)
	}
	return tw.Flush()
}

func writePresets(p *program) error {
	if p.ui.JSON {
		for _, pr := range presets.List() {
			p.ui.Emit(map[string]string{"name": pr.Name, "summary": pr.Summary})
		}
		return nil
	}
	tw := tabwriter.NewWriter(p.stdout, 0, 4, 2, ' ', 0)
	for _, pr := range presets.List() {
		fmt.Fprintf(tw, "%s\t%s\n", pr.Name, pr.Summary)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.stdout, "\nplimsoll presets NAME prints one; plimsoll run NAME runs it.")
	return err
}
