package scenario

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/workload"
)

// Every way to describe a data set yields objects that can be read and compared.
func TestDataSet(t *testing.T) {
	base := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(base, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	write("tree/b.txt", "bb")
	write("tree/a/c.txt", "ccc")
	write("trace.csv", "1kB,first\n# a comment\n12\n")
	for _, c := range []struct {
		name    string
		data    experiment.Data
		objects int
		bytes   int64
		first   string
	}{
		{"size", experiment.Data{Objects: 3, Size: 10}, 3, 30, "00000000.bin"},
		{"copies", experiment.Data{Objects: 3, Size: 10, Copies: 4}, 12, 120, "00000000-00000000.bin"},
		{"mix", experiment.Data{Objects: 10, Mix: experiment.Mix{{Share: 0.6, Size: 5}, {Share: 0.4, Size: 1000}}}, 10,
			6*5 + 4*1000, "00000000.bin"},
		{"mix of one range", experiment.Data{Objects: 10, Mix: experiment.Mix{{Share: 1, From: 7, To: 7}}}, 10, 70,
			"00000000.bin"},
		{"directory", experiment.Data{Directory: "tree"}, 2, 5, "a/c.txt"},
		{"copies of a directory", experiment.Data{Directory: "tree", Copies: 2}, 4, 10, "a/c-00000000.txt"},
		{"trace", experiment.Data{Trace: "trace.csv"}, 2, 1012, "first"},
	} {
		t.Run(c.name, func(t *testing.T) {
			set, err := DataSet(t.Context(), c.data, 7, base)
			must(t, err)
			sum := int64(0)
			for i := range set.Len() {
				o := set.Object(i)
				sum += o.Size
				copyChecked(t, set, i)
			}
			if set.Len() != c.objects || sum != c.bytes || set.Object(0).Name != c.first {
				t.Errorf("%d objects of %d bytes, the first %q", set.Len(), sum, set.Object(0).Name)
			}
			again, err := DataSet(t.Context(), c.data, 7, base)
			if err != nil || again.Fingerprint() != set.Fingerprint() {
				t.Errorf("the same data set has another fingerprint (%v)", err)
			}
		})
	}
}

func copyChecked(t *testing.T, set workload.Set, i int) {
	t.Helper()
	r, err := set.Open(i)
	must(t, err)
	defer r.Close()
	w, err := workload.Check(set, i)
	must(t, err)
	if _, err := io.Copy(w, r); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func TestDataSetErrors(t *testing.T) {
	base := t.TempDir()
	must(t, os.WriteFile(filepath.Join(base, "trace.csv"), []byte("1kB\n10M\n"), 0o644))
	must(t, syscall.Mkfifo(filepath.Join(base, "pipe"), 0o600)) // must not block
	for _, c := range []struct {
		data experiment.Data
		want string
	}{
		{experiment.Data{}, "no data set"},
		{experiment.Data{Directory: "nowhere"}, "nowhere"},
		{experiment.Data{Directory: "trace.csv"}, "not a directory"},
		{experiment.Data{Trace: "nowhere.csv"}, "nowhere.csv"},
		{experiment.Data{Trace: "pipe"}, "not a regular file"},
		{experiment.Data{Trace: "/dev/zero"}, "not a regular file"},
		{experiment.Data{Trace: "trace.csv"}, "trace.csv:2: "},
	} {
		set, err := DataSet(t.Context(), c.data, 1, base)
		if err == nil || set != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, %v", c.data, set, err)
		}
	}
}
