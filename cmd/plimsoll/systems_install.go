package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/all"
	"github.com/plimsoll-project/plimsoll/system/install"
)

// installTime limits one installation, including downloads.
const installTime = 20 * time.Minute

func (p *program) installCommand() *cobra.Command {
	var ref, from string
	c := &cobra.Command{
		Use:  "install NAME…",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 1 && ref+from != "" {
				return usage(errors.New("--image and --image-dir are for one system"), "name one system")
			}
			var todo []func() error
			for _, name := range args { // check all names first, so that a typo stops before anything is installed
				do, err := p.installer(c.Context(), name, ref, from)
				if err != nil {
					return usage(err, "see plimsoll systems")
				}
				todo = append(todo, do)
			}
			for _, do := range todo {
				err := do()
				if err != nil && c.Context().Err() == nil {
					err = ui.Exit(ui.CodePreconditions, err)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().StringVar(&ref, "image", "", "take this container image: NAME[:TAG][@sha256:DIGEST]")
	c.Flags().StringVar(&from, "image-dir", "",
		"take it from a file that docker save wrote instead, or a directory with an OCI layout")
	return c
}

// installer returns a function that installs the program or image of a name.
func (p *program) installer(ctx context.Context, name, ref, from string) (func() error, error) {
	if i, ok := install.ByName(name); ok && ref+from == "" {
		return func() error { return p.install(ctx, i) }, nil
	}
	if from != "" {
		ref = cmp.Or(ref, "local/"+name)
	}
	for _, s := range all.All() {
		if image := s.Info().Images[name]; image != "" { // of a program that a system needs beside its own
			return func() error { return p.installImage(ctx, name, cmp.Or(ref, image), from) }, nil
		}
	}
	s, ok := all.ByName(name)
	takes := func(o system.Option) bool { return o.Name == system.ImageName }
	if !ok || !slices.ContainsFunc(s.Info().Options, takes) {
		return nil, fmt.Errorf("%q cannot be installed", name)
	}
	more := s.Info().Images // what else it needs
	if from != "" {
		more = nil
	}
	if ref = cmp.Or(ref, s.Info().Image); ref == "" {
		return nil, fmt.Errorf("%s has no image of its own to install; name one: --image or --image-dir", name)
	}
	return func() error {
		err := p.installImage(ctx, name, ref, from)
		for _, program := range slices.Sorted(maps.Keys(more)) {
			if err == nil {
				err = p.installImage(ctx, program, more[program], "")
			}
		}
		return err
	}, nil
}

func (p *program) install(ctx context.Context, i install.Program) error {
	ctx, cancel := context.WithTimeoutCause(ctx, installTime, fmt.Errorf("not done after %s", installTime))
	defer cancel()
	p.ui.Progress("installing " + i.Name + " " + i.Version)
	bin, err := i.Install(ctx, io.Discard)
	p.ui.Progress("")
	if err != nil {
		return err
	}
	p.ui.Say("%s %s is installed in %s", i.Name, i.Version, bin)
	return nil
}
