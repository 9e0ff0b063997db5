package tahoe

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/install"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/system/systemtest/imagetest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func truths() systemtest.Truths {
	return systemtest.Truths{
		ContentAddressed: true, // by a secret of the client
		Slow:             true,
		Unknown: []system.Ref{
			"URI:CHK:aaaaaaaaaaaaaaaaaaaaaaaaaa:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:2:3:1000",
			"URI:SSK:aaaaaaaaaaaaaaaaaaaaaaaaaa:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		},
		Malformed: []system.Ref{
			"URI:CHK:aaaaaaaaaaaaaaaaaaaaaaaaaa:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:2:3",
			"URI:LIT:1", "URI:DIR2-CHK:a", "URI:CHK:AAAA",
		},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	// The suite starts four deployments: few daemons, each of which takes a second of CPU time.
	opt := system.Options{"nodes": "1", "needed": "1", "total": "1", "mutable": "MDMF"}
	systemtest.Run(t, systemtest.Suite{System: System{}, Options: opt, Truths: truths()})
}

// From an image with the same Python and the same packages, Tahoe-LAFS behaves like the installed
// one.
func TestConformanceFromImage(t *testing.T) {
	systemtest.Need(t, System{}, nil)
	bin, err := install.Locate(name, nil, "PLIMSOLL_TAHOE")
	must(t, err)
	python := install.Interpreter(bin)
	if python == "" {
		t.Skipf("%s is no Python script", bin)
	}
	out, err := exec.Command(python, "-c", "import os, sys; print(sys.prefix); print(os.path.realpath(sys.executable)); "+
		"[print(e.path) for e in os.scandir(os.path.dirname(os.__file__)) if not e.name.startswith(('site-', 'test', "+
		"'config-'))]").Output()
	must(t, err)
	paths := append(strings.Fields(string(out)), python, bin)
	if real, err := os.Readlink(python); err == nil && filepath.IsAbs(real) {
		paths = append(paths, real)
	}
	opt := system.Options{
		"image": systemtest.Pulled(t, imagetest.OfMachine(t, paths...)), "binary": bin,
		"nodes": "1", "needed": "1", "total": "1", "mutable": "MDMF",
	}
	systemtest.Run(t, systemtest.Suite{System: System{}, Options: opt, Truths: truths(), Image: true, Brief: true})
}

// one returns the options of the smallest grid: a storage node and a client.
func one() system.Options { return system.Options{"nodes": "1", "needed": "1", "total": "1"} }

func TestAttach(t *testing.T) {
	_, n := startFor(t, one())
	refs := []string{string(mustPut(t, n, "small", 100)), string(mustPut(t, n, "large", 300_000)),
		string(mustPut(t, n, "literal", 10))}
	opt := system.Options{"url": n.base.String(), "caps": strings.Join(refs, "\n")}

	c, err := systemtest.Attach(t, System{}, opt, true)
	must(t, err)
	if id := c.Identity(); id["protocol"] != "gbs" || id["nodes"] != "1 of 1 known are connected" {
		t.Errorf("identity %v", id)
	}
	w := c.Nodes()[0].(system.Store)
	wantContent(t, w, mustPut(t, w, "mine", 3000), systemtest.Bytes("mine", 3000))
	if phases, err := w.(system.Phaser).Phases(systemtest.Context(t)); err != nil || len(phases) == 0 {
		t.Errorf("phases %v, %v", phases, err)
	}
	c, err = systemtest.Attach(t, System{}, opt, false)
	must(t, err)
	r := c.Nodes()[0].(*node)
	_, err = r.PutMutable(systemtest.Context(t), "m", 1, strings.NewReader("m"))
	wantKind(t, "put mutable without allow: write", err, system.ErrReadOnly)
	_, err = r.MakeDirectory(systemtest.Context(t), "d")
	wantKind(t, "make directory without allow: write", err, system.ErrReadOnly)
	for want, opt := range map[string]system.Options{
		"nothing to read":    {"url": opt["url"]},
		"not the URL":        {"url": "localhost:3456"},
		"connection refused": {"url": "http://127.0.0.1:1", "caps": refs[0]},
		"not a cap":          {"url": opt["url"], "caps": "URI:CHK:x"},
	} {
		if _, err := systemtest.Attach(t, System{}, opt, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("attach with %v: %v, want %q", opt, err, want)
		}
	}
	attached := truths()
	attached.Without = []string{"stats"} // the disks are not accessible
	systemtest.Run(t, systemtest.Suite{System: System{}, Truths: attached, Attach: func(t *testing.T) (system.Options,
		func()) {
		return opt, func() { must(t, n.Stop(systemtest.Context(t))) }
	}})
}
