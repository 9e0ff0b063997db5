package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"text/tabwriter"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/experiment/suggest"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/all"
	"github.com/plimsoll-project/plimsoll/testbed/image"
)

func (p *program) systemsCommand() *cobra.Command {
	c := verb("systems [NAME]", cobra.MaximumNArgs(1), func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return p.listSystems(c.Context())
		}
		s, ok := all.ByName(args[0])
		if !ok {
			return usage(fmt.Errorf("there is no system %q", args[0]),
				suggest.DidYouMean(args[0], engine.Catalog(all.All()).Names()))
		}
		return p.writeSystems(p.stdout, "one", struct {
			status
			Options []system.Option
		}{statusOf(c.Context(), s), s.Info().Options})
	})
	c.AddCommand(p.installCommand())
	return c
}

// status describes a system on this machine.
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
	tw := tabwriter.NewWriter(p.stdout, 0, 4, 2, ' ', 0)
	err := errors.Join(p.writeSystems(tw, "table", list), tw.Flush())
	return errors.Join(err, p.writeSystems(p.stdout, "missing", list))
}

func statusOf(ctx context.Context, s system.System) status {
	info := s.Info()
	st := status{Name: info.Name, Summary: info.Summary, Modes: info.Modes, Can: info.Can, Embedded: info.Embedded,
		Install: info.Install}
	st.Default, _, _ = strings.Cut(info.Image, "@") // the digest would only be noise
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

//go:embed systems.txt
var systemsText string

// writeSystems writes a part of systems.txt.
func (p *program) writeSystems(w io.Writer, part string, data any) error {
	t := template.Must(template.New("").Funcs(template.FuncMap{
		"label": func(label, text string) string {
			return p.wrapped(fmt.Sprintf("%-11s", label), strings.Repeat(" ", 11), text)
		},
		"prose": p.wrapped,
		"join":  strings.Join,
		"lines": func(all []string) []string { return words.Wrap("", "", strings.Join(all, " "), 38) },
		"trim":  strings.TrimPrefix,
		"kind":  kindOf,
	}).Parse(systemsText))
	return t.ExecuteTemplate(w, part, data)
}

// prose prints a text like [program.wrapped].
func (p *program) prose(first, later, text string) {
	io.WriteString(p.stdout, p.wrapped(first, later, text))
}

// wrapped wraps a text if the results go to a terminal; otherwise it is one line. An empty text stays empty.
func (p *program) wrapped(first, later, text string) string {
	width := math.MaxInt
	if w := p.ui.Width(); w > 0 {
		width = w - 1
	}
	if text == "" {
		return ""
	}
	return strings.Join(words.Wrap(first, later, text, width), "\n") + "\n"
}

// Here says how a system is available on this machine.
func (st status) Here() string {
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

// kindOf describes the values of an option.
func kindOf(o system.Option) string {
	kind, def := cmp.Or(strings.Join(o.Enum, "|"), o.Type), o.Default
	if b, err := experiment.ParseBytes(def); err == nil && o.Type == "size" {
		def = b.String()
	}
	switch {
	case o.Required:
		kind += ", required"
	case def != "":
		kind += ", default " + def
	}
	return kind
}
