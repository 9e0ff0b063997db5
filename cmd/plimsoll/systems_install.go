package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/all"
	"github.com/plimsoll-project/plimsoll/system/install"
	"github.com/plimsoll-project/plimsoll/testbed/image"
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

// sizeTime limits asking a registry for the size of an image.
const sizeTime = 10 * time.Second

// missingImages returns the images that started systems of a plan need and this machine lacks.
func missingImages(plan *experiment.Plan) (store image.Store, missing []string, err error) {
	if store, err = image.Default(); err != nil {
		return store, nil, err
	}
	seen := map[string]bool{}
	for _, use := range plan.Experiment.Systems {
		for option, ref := range use.With {
			named := option == system.ImageName || strings.HasSuffix(option, "_"+system.ImageName)
			if !named || ref == "" || seen[ref] || use.Attached() {
				continue
			}
			seen[ref] = true
			_, err := store.Find(ref)
			switch {
			case errors.Is(err, image.ErrAbsent):
				missing = append(missing, ref)
			case err != nil:
				return store, nil, usage(fmt.Errorf("%s: %w", use.Name, err),
					"option `"+option+"` is NAME[:TAG][@sha256:DIGEST]")
			}
		}
	}
	slices.Sort(missing)
	return store, missing, nil
}

// sizeOf returns the download size of an image in words.
func sizeOf(ctx context.Context, store image.Store, ref string) string {
	ctx, cancel := context.WithTimeout(ctx, sizeTime)
	defer cancel()
	size, err := store.Size(ctx, ref)
	if err != nil {
		return "size not known: " + strings.TrimPrefix(err.Error(), "image "+ref+": ")
	}
	return words.Bytes(float64(size)) + " to pull"
}

// sayMissingImages lists the images that a run would pull.
func (p *program) sayMissingImages(ctx context.Context, plan *experiment.Plan) error {
	store, missing, err := missingImages(plan)
	for _, ref := range missing {
		p.ui.Say("image %s: %s", ref, sizeOf(ctx, store, ref))
	}
	return err
}

// pullMissing pulls the missing images of a plan: with --pull or, on a terminal, after asking.
func (p *program) pullMissing(ctx context.Context, plan *experiment.Plan, pull bool) error {
	store, missing, err := missingImages(plan)
	if err != nil {
		return err
	}
	for _, ref := range missing {
		if !pull {
			err := fmt.Errorf("image %s is not on this machine (%s)", ref, sizeOf(ctx, store, ref))
			if !p.confirm(err.Error() + ". Pull it?") {
				return ui.Exit(ui.CodePreconditions, ui.WithHint(err, "add --pull"))
			}
		}
		if _, err := p.pull(ctx, store, ref, ""); err != nil {
			return err
		}
	}
	return nil
}

// confirm asks the user; without a terminal the answer is no.
func (p *program) confirm(question string) bool {
	if !p.ui.Terminal() || !term.IsTerminal(int(os.Stdin.Fd())) {
		return false
	}
	fmt.Fprint(p.stderr, question+" [y/N] ")
	answer, _ := bufio.NewReader(p.stdin).ReadString('\n')
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "y")
}

// pull gets an image from its registry, or from a file or directory.
func (p *program) pull(ctx context.Context, store image.Store, ref, from string) (i image.Image, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, installTime, fmt.Errorf("not done after %s", installTime))
	defer cancel()
	p.ui.Progress("image " + ref)
	if from != "" {
		i, err = store.Load(ctx, ref, from)
	} else {
		i, err = store.Pull(ctx, ref, func(done, total int64) {
			p.ui.Progress(fmt.Sprintf("image %s: %s of %s", ref,
				words.Bytes(float64(done)), words.Bytes(float64(total))))
		})
	}
	p.ui.Progress("")
	if err != nil && ctx.Err() == nil {
		err = ui.Exit(ui.CodePreconditions, err)
	}
	if err == nil {
		p.ui.Say("image %s is here", i)
	}
	return i, err
}

// installImage makes an image the default for starting the program of that name.
func (p *program) installImage(ctx context.Context, name, ref, from string) error {
	store, err := image.Default()
	if err != nil {
		return err
	}
	i, err := p.pull(ctx, store, ref, from)
	if err == nil {
		err = store.Alias(name, i)
	}
	return err
}
