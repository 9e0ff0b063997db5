package kubernetes

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/install"
	"github.com/plimsoll-project/plimsoll/testbed/image/imagetest"
)

const systemsImage = "localhost/plimsoll:systems"

// programs are those of systems that this machine has, and the files that they need beside libraries.
func programs(t *testing.T) (found map[string]string, files []string) {
	t.Helper()
	found = map[string]string{}
	if bin, err := system.Program("nginx", nil, "binary", "PLIMSOLL_NGINX", "nginx", "/usr/sbin/nginx"); err == nil {
		found["nginx"] = bin
	}
	if bin, err := system.Program("kubo", nil, "binary", "PLIMSOLL_KUBO", "ipfs"); err == nil {
		found["kubo"] = bin
	}
	bin, err := install.Locate("tahoe", nil, "PLIMSOLL_TAHOE")
	python := install.Interpreter(bin)
	if err != nil || python == "" {
		return found, nil
	}
	found["tahoe"] = bin
	const ask = "import os, sys; print(os.path.dirname(os.__file__)); print(sys.prefix); " +
		"print(os.path.realpath(sys.executable))"
	out, err := exec.Command(python, "-c", ask).Output()
	if err != nil {
		t.Fatal(err)
	}
	files = append(strings.Fields(string(out)), python)
	if real, err := os.Readlink(python); err == nil && filepath.IsAbs(real) {
		files = append(files, real)
	}
	return found, files
}

const experiments = `
nginx:
scenario: retrieve
systems: [nginx]
data: {objects: 2, size: 1MiB}
retrieve: {range: 64KiB, concurrency: 2, requests: 50}
---
tahoe:
scenario: overhead
systems: [tahoe]
data: {objects: 1, size: [56B, 100kB]}
overhead: {operation: [put, get], concurrency: 1, count: 2, time: 1s, longest: 1m}
---
kubo:
scenario: disseminate
systems: [kubo]
data: {size: 2MiB}
disseminate: {nodes: 2}
`

// Systems that are programs run in pods whose image has these.
func TestClusterSystems(t *testing.T) {
	notShort(t)
	c := real(t, "")
	found, files := programs(t)
	if len(found) == 0 {
		t.Skip("this machine has none of nginx, tahoe and kubo (ipfs)")
	}
	paths := []string{"/usr/local/bin", "/usr/bin", "/bin"}
	for _, bin := range append([]string{os.Getenv("PLIMSOLL_BINARY")}, slices.Collect(maps.Values(found))...) {
		files, paths = append(files, bin), append(paths, filepath.Dir(bin))
	}
	env := []string{"PATH=" + strings.Join(paths, ":")}
	img, err := mutate.Config(imagetest.OfMachine(t, files...), v1.Config{Env: env})
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(systemsImage)
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "image.tar")
	if err := tarball.WriteToFile(archive, tag, img); err != nil {
		t.Fatal(err)
	}
	script(t, "import", archive)
	for text := range strings.SplitSeq(experiments, "---\n") {
		name, text, _ := strings.Cut(strings.TrimSpace(text), ":\n")
		t.Run(name, func(t *testing.T) {
			if found[name] == "" {
				t.Skip("this machine does not have it")
			}
			text += "\nrepetitions: 1\nwarmup: 0\nlimits: {others: none, machine: none, start: 3m}\n"
			dir := filepath.Join(t.TempDir(), "run")
			call(t, "run", experimentFile(t, text), "--out", dir, "--on", "kubernetes", "--image", systemsImage,
				"--pack", "--keep-going").ends(5 * time.Minute)
			if states, reasons := trials(t, dir); states[record.Done] == 0 || len(states) != 1 {
				t.Errorf("trials %v, not valid for %v", states, reasons)
			}
			nothingLeft(t, c)
		})
	}
}
