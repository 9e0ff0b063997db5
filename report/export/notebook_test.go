package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNotebook executes examples/analysis.ipynb on a run: it draws its two figures, and its
// medians are the report's.
func TestNotebook(t *testing.T) {
	python, dir := duckdb(t), t.TempDir()
	run, r := retrieved(t)
	raw, err := os.ReadFile("../../examples/analysis.ipynb")
	must(t, err)
	var notebook struct {
		Cells []struct {
			Type   string   `json:"cell_type"`
			Source []string `json:"source"`
		} `json:"cells"`
	}
	must(t, json.Unmarshal(raw, &notebook))
	var program strings.Builder
	for _, c := range notebook.Cells {
		if c.Type == "code" {
			program.WriteString(strings.Join(c.Source, "") + "\n")
		}
	}
	program.WriteString("for m in medians: print(f'{m[0]:g} {m[1]} {m[2]:g} {m[3]:.6g} {m[5]}')\n")
	writeFile(t, filepath.Join(dir, "trials.parquet"), func(w io.Writer) error { return Parquet(r, w) })
	writeFile(t, filepath.Join(dir, "ops.parquet"), func(w io.Writer) error { return OperationsParquet(run, w) })
	cmd := exec.CommandContext(t.Context(), python, "-c", program.String())
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "MPLBACKEND=Agg", "MPLCONFIGDIR="+dir)
	var said bytes.Buffer // matplotlib may say that it builds its cache of fonts
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	var want []string
	for _, c := range r.Cells {
		rate, _ := c.Factor("link.rate")
		concurrency, _ := c.Factor("retrieve.concurrency")
		if s, ok := c.Metrics["throughput"]; ok {
			want = append(want, fmt.Sprintf("%g %s %g %.6g %d\n", rate.Number, c.System, concurrency.Number,
				float64(s.Median), s.N))
		}
	}
	slices.Sort(want)
	if got := slices.Sorted(strings.Lines(string(out))); !slices.Equal(got, want) {
		t.Errorf("medians of the notebook:\n%s\nof the report:\n%s", got, want)
	}
	for _, figure := range []string{"throughput.png", "first-byte.png"} {
		if info, err := os.Stat(filepath.Join(dir, figure)); err != nil || info.Size() < 5000 {
			t.Errorf("%s was not drawn: %v", figure, err)
		}
	}
}
