package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/workload"
)

func (p *program) dataCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "data",
		Short: "write the files of a data set, or verify them",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(p.dataGenerateCommand(), p.dataVerifyCommand())
	return c
}

// dataFlags describe a data set, as the section data of an experiment does.
type dataFlags struct {
	flags *pflag.FlagSet
	seed  uint64
}

// dataKeys are the flags that are keys of the section data.
var dataKeys = []struct{ key, help string }{
	{"objects", "number of objects"},
	{"size", "size of each: 40MiB"},
	{"mix", `weighted sizes: "60% 2MiB..6MiB, 30% 20MiB, 10% 700MiB"`},
	{"spread", "sizes log-uniform in a range: 1kB..1GB"},
	{"trace", "file with one size[,name] per line"},
	{"copies", "how often the set is there, under other names and with other content"},
	{"compressible", "share of each object that compresses to nearly nothing: 30%"},
	{"duplicate", "share of the objects that are an earlier one: 10%"},
}

func newDataFlags(c *cobra.Command) *dataFlags {
	f := &dataFlags{flags: c.Flags()}
	for _, k := range dataKeys {
		f.flags.String(k.key, "", k.help)
	}
	f.flags.Uint64Var(&f.seed, "seed", 1, "names the content: the same seed gives the same bytes")
	return f
}

// set builds the data set.
func (f *dataFlags) set() (workload.Set, error) {
	values := map[string]string{}
	for _, k := range dataKeys {
		if flag := f.flags.Lookup(k.key); flag.Changed {
			values[k.key] = flag.Value.String()
		}
	}
	if values["size"] == "" && values["mix"] == "" && values["spread"] == "" && values["trace"] == "" {
		return nil, ui.Exit(ui.CodeUsage, ui.WithHint(errors.New("nothing says how large the objects are"), "give one of --size, --mix, --spread, --trace"))
	}
	data, err := experiment.ParseData(values, func(key string) string { return "--" + key })
	if err != nil {
		return nil, ui.Exit(ui.CodeUsage, err)
	}
	set, err := scenario.DataSet(data, f.seed, "")
	return set, ui.Exit(ui.CodeUsage, err)
}

func (p *program) dataGenerateCommand() *cobra.Command {
	var list bool
	c := &cobra.Command{
		Use:   "generate DIR",
		Short: "write the files of a data set below DIR; those that are there already are compared and kept",
	}
	f := newDataFlags(c)
	c.Flags().BoolVar(&list, "list", false, "print size and name of each object instead; no DIR")
	c.Args = func(c *cobra.Command, args []string) error {
		if list && len(args) > 0 {
			return usageError(c, "no directory with --list")
		}
		if list {
			return nil
		}
		return exactly(1, "one directory")(c, args)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		set, err := f.set()
		if err != nil {
			return err
		}
		if list {
			return p.listData(c.Context(), set)
		}
		return p.generateData(c.Context(), set, args[0])
	}
	return c
}

func (p *program) dataVerifyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "verify DIR",
		Short: "compare the files below DIR, byte by byte, with the data set that the same flags describe",
		Args:  exactly(1, "one directory"),
	}
	f := newDataFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		set, err := f.set()
		if err != nil {
			return err
		}
		return p.verifyData(c.Context(), set, args[0])
	}
	return c
}

// listData prints a trace file: generate --trace reads it.
func (p *program) listData(ctx context.Context, set workload.Set) error {
	for i := range set.Len() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		o := set.Object(i)
		if p.ui.JSON {
			p.ui.Emit(map[string]any{"type": "object", "name": o.Name, "size": o.Size})
			continue
		}
		if _, err := fmt.Fprintf(p.stdout, "%d,%s\n", o.Size, o.Name); err != nil {
			return err
		}
	}
	return nil
}

// dataSummary is what a data command found.
type dataSummary struct {
	Type        string `json:"type"` // "data"
	Dir         string `json:"dir"`
	Objects     int    `json:"objects"`
	Bytes       int64  `json:"bytes"`
	Fingerprint string `json:"fingerprint"`
	Kept        int    `json:"kept,omitempty"`
	Whole       int    `json:"whole,omitempty"`
	Missing     int    `json:"missing,omitempty"`
	Differ      int    `json:"differ,omitempty"`
	Extra       int    `json:"extra,omitempty"`
}

func summaryOf(set workload.Set, dir string) dataSummary {
	s := dataSummary{Type: "data", Dir: dir, Objects: set.Len(), Fingerprint: set.Fingerprint()}
	for i := range set.Len() {
		s.Bytes += set.Object(i).Size
	}
	return s
}

func (p *program) generateData(ctx context.Context, set workload.Set, dir string) error {
	s := summaryOf(set, dir)
	if err := roomFor(set, dir); err != nil {
		return ui.Exit(ui.CodePreconditions, err)
	}
	begun := time.Now()
	kept, err := workload.WriteFiles(ctx, set, dir, p.dataProgress(s))
	p.ui.Progress("")
	if err != nil {
		if ctx.Err() != nil {
			return ui.WithHint(err, "every file that is there is whole; the same command goes on")
		}
		return err
	}
	s.Kept = kept
	if p.ui.JSON {
		p.ui.Emit(s)
		return nil
	}
	also := ""
	if kept > 0 {
		also = fmt.Sprintf(", %d of them there already", kept)
	}
	_, err = fmt.Fprintf(p.stdout, "%d objects, %s, below %s%s (%s)\nfingerprint %s\n", s.Objects, experiment.RoughBytes(float64(s.Bytes)), dir, also,
		experiment.RoughDuration(time.Since(begun).Seconds()), s.Fingerprint)
	return err
}

func (p *program) verifyData(ctx context.Context, set workload.Set, dir string) error {
	s := summaryOf(set, dir)
	v, err := workload.VerifyFiles(ctx, set, dir, p.dataProgress(s))
	p.ui.Progress("")
	if err != nil {
		return err
	}
	s.Whole, s.Missing, s.Differ, s.Extra = v.Whole, v.Missing, v.Differ, v.Extra
	if p.ui.JSON {
		p.ui.Emit(s)
	}
	if v.Good() {
		if !p.ui.JSON {
			_, err = fmt.Fprintf(p.stdout, "%d objects, %s, below %s: every byte is as it was written\nfingerprint %s\n", s.Objects, experiment.RoughBytes(float64(s.Bytes)), dir, s.Fingerprint)
		}
		return err
	}
	wrong := make([]string, len(v.First))
	for i, err := range v.First {
		wrong[i] = "  " + err.Error()
	}
	if more := v.Missing + v.Differ + v.Extra - len(v.First); more > 0 {
		wrong = append(wrong, fmt.Sprintf("  and %d more", more))
	}
	err = fmt.Errorf("%s is not the data set: of %d objects %d are whole, %d missing, %d different; %d files are no objects\n%s", dir, s.Objects, v.Whole, v.Missing, v.Differ, v.Extra, strings.Join(wrong, "\n"))
	return ui.Exit(ui.CodeCorruption, ui.WithHint(err, "give the same flags as to `data generate`, the seed included"))
}

// dataProgress draws how far it is, with the rate so far.
func (p *program) dataProgress(s dataSummary) workload.Progress {
	begun := time.Now()
	var objects int
	var bytes int64
	return func(n int, size int64) {
		objects += n
		bytes += size
		if p.ui.Terminal() {
			rate := float64(bytes) / max(time.Since(begun).Seconds(), 1e-3)
			p.ui.Progress(fmt.Sprintf("%d of %d objects, %s of %s, %s/s", objects, s.Objects, experiment.RoughBytes(float64(bytes)), experiment.RoughBytes(float64(s.Bytes)), experiment.RoughBytes(rate)))
		}
	}
}

// roomFor makes sure that the disk has room for the files that are not there yet,
// each rounded up to the file system's blocks, and inodes for them.
func roomFor(set workload.Set, dir string) error {
	at := dir
	var st unix.Statfs_t
	for {
		err := unix.Statfs(at, &st)
		if err == nil {
			break
		}
		if parent := filepath.Dir(at); errors.Is(err, unix.ENOENT) && parent != at {
			at = parent
			continue
		}
		return fmt.Errorf("cannot tell the free space of %s: %w", at, err)
	}
	block := int64(st.Bsize)
	var need, files int64
	for i := range set.Len() {
		o := set.Object(i)
		if info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(o.Name))); err == nil && info.Size() == o.Size {
			continue
		}
		need += (o.Size + block - 1) / block * block
		files++
	}
	if free := float64(st.Bavail) * float64(block); float64(need) > free {
		return ui.WithHint(fmt.Errorf("%s has %s free, the files need %s", at, experiment.RoughBytes(free), experiment.RoughBytes(float64(need))),
			"choose a larger disk or fewer objects; an upload test makes the same content while it runs, without files")
	}
	// Some file systems have no fixed number of them and say 0.
	if st.Files > 0 && uint64(files) > st.Ffree {
		return ui.WithHint(fmt.Errorf("%s has room for %d more files, the data set has %d", at, st.Ffree, files), "choose another file system or fewer objects")
	}
	return nil
}
