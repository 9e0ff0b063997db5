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
	c := verb("install NAME…", cobra.MinimumNArgs(1), func(c *cobra.Command, args []string) error {
		if len(args) > 1 && ref+from != "" {
			return usage(errors.New("--image and --image-dir are for one system"), "name one system")
		}
		for _, name := range args {
			if err := p.installNamed(c.Context(), name, ref, from); err != nil {
				return err
			}
		}
		return nil
	})
	c.Flags().StringVar(&ref, "image", "", "take this container image: NAME[:TAG][@sha256:DIGEST]")
	c.Flags().StringVar(&from, "image-dir", "",
		"take it from a file that docker save wrote instead, or a directory with an OCI layout")
	return c
}

// installNamed installs the program or image of a name.
func (p *program) installNamed(ctx context.Context, name, ref, from string) error {
	if i, ok := install.ByName(name); ok && ref+from == "" {
		return p.install(ctx, i)
	}
	if from != "" {
		ref = cmp.Or(ref, "local/"+name)
	}
	for _, s := range all.All() {
		if image := s.Info().Images[name]; image != "" { // of a program that a system needs beside its own
			return p.installImage(ctx, name, cmp.Or(ref, image), from)
		}
	}
	s, ok := all.ByName(name)
	takes := func(o system.Option) bool { return o.Name == system.ImageName }
	if !ok || !slices.ContainsFunc(s.Info().Options, takes) {
		return usage(fmt.Errorf("%q cannot be installed", name), "see plimsoll systems")
	}
	if ref = cmp.Or(ref, s.Info().Image); ref == "" {
		return usage(fmt.Errorf("%s has no image of its own to install", name), "name one: --image or --image-dir")
	}
	err := p.installImage(ctx, name, ref, from)
	more := s.Info().Images // what else it needs
	for _, program := range slices.Sorted(maps.Keys(more)) {
		if err == nil && from == "" {
			err = p.installImage(ctx, program, more[program], "")
		}
	}
	return err
}

func (p *program) install(ctx context.Context, i install.Program) error {
	ctx, cancel := context.WithTimeoutCause(ctx, installTime, fmt.Errorf("not done after %s", installTime))
	defer cancel()
	p.ui.Progress("installing " + i.Name + " " + i.Version)
	bin, err := i.Install(ctx, io.Discard)
	p.ui.Progress("")
	if err == nil {
		p.ui.Say("%s %s is installed in %s", i.Name, i.Version, bin)
	} else if ctx.Err() == nil {
		err = ui.Exit(ui.CodePreconditions, err)
	}
	return err
}
