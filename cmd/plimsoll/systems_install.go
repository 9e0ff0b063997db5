package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/system/install"
)

// installTime bounds one installation, download included.
const installTime = 20 * time.Minute

func (p *program) installCommand() *cobra.Command {
	var names []string
	for _, i := range install.Programs() {
		names = append(names, fmt.Sprintf("%s %s (%s)", i.Name, i.Version, i.Size))
	}
	return &cobra.Command{
		Use:   "install NAME…",
		Short: "install systems that are Python programs: tahoe, deluge",
		Long: `Installs each into a Python environment of its own in your data directory
(XDG_DATA_HOME/plimsoll, by default ~/.local/share/plimsoll), from a lock that
names every file by its hash. To remove one, delete its directory there.

Can be installed: ` + strings.Join(names, ", ") + `.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var programs []install.Program
			for _, name := range args { // all names first: nothing is half done for a typing error
				i, ok := install.ByName(name)
				if !ok {
					return usage(fmt.Errorf("%q cannot be installed", name),
						"can be installed: "+strings.Join(names, ", ")+"; plimsoll systems says how to get the others")
				}
				programs = append(programs, i)
			}
			for _, i := range programs {
				err := p.install(c.Context(), i)
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
}

func (p *program) install(ctx context.Context, i install.Program) error {
	ctx, cancel := context.WithTimeoutCause(ctx, installTime, fmt.Errorf("not done after %s", installTime))
	defer cancel()
	p.ui.Progress("installing " + i.Name + " " + i.Version)
	said, log := io.Pipe()
	go func() {
		lines := bufio.NewScanner(said)
		for lines.Scan() {
			p.ui.Progress("installing " + i.Name + ": " + strings.TrimSpace(lines.Text()))
		}
		io.Copy(io.Discard, said) // a line too long must not stop pip
	}()
	bin, err := i.Install(ctx, log)
	log.Close()
	p.ui.Progress("")
	if err != nil {
		return err
	}
	p.ui.Say("%s %s is installed in %s", i.Name, i.Version, bin)
	return nil
}
