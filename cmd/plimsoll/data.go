package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/workload"
)

func (p *program) dataCommand() *cobra.Command {
	c := verb("data", cobra.NoArgs, func(c *cobra.Command, _ []string) error { return c.Help() })
	var set []string
	wants := exactly(2, "one preset or experiment file, and one directory")
	generate := verb("generate PRESET|FILE DIR", wants, func(c *cobra.Command, args []string) error {
		cfg, _, err := p.load(args[0], set)
		if err != nil {
			return err
		}
		data := cfg.Plan.Cells[0].Data
		if data.Source() == "directory" {
			return usage(errors.New("data.directory is a directory of files already"),
				"copy it, or describe a data set by objects and size, mix or trace")
		}
		objects, err := scenario.DataSet(c.Context(), data, cfg.Plan.Experiment.Seed, cfg.Base)
		if err != nil {
			return ui.Exit(ui.CodeUsage, err)
		}
		return p.writeData(c.Context(), objects, args[1])
	})
	setFlag(generate, &set)
	c.AddCommand(generate)
	return c
}

func (p *program) writeData(ctx context.Context, set workload.Set, dir string) error {
	if there, err := os.ReadDir(dir); err == nil && len(there) > 0 {
		return usage(fmt.Errorf("%s is not empty", dir), "name a new directory")
	}
	var bytes int64
	for i := range set.Len() {
		o := set.Object(i)
		path := filepath.Join(dir, filepath.FromSlash(o.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := errors.Join(ctx.Err(), writeObject(set, i, path)); err != nil {
			return fmt.Errorf("write object %s of %d bytes to %s: %w", o.Name, o.Size, dir, err)
		}
		bytes += o.Size
	}
	return p.result(
		map[string]any{"type": "data", "dir": dir, "objects": set.Len(), "bytes": bytes, "fingerprint": set.Fingerprint()},
		"%s, %s, in %s", words.Plural(int64(set.Len()), "object", "objects"), words.Plural(bytes, "byte", "bytes"), dir)
}

func writeObject(set workload.Set, i int, path string) error {
	r, err := set.Open(i)
	if err != nil {
		return err
	}
	defer r.Close()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
