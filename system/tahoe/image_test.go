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

// From an image with the same Python and the same packages, Tahoe-LAFS does what it does
// as it was installed.
func TestConformanceFromImage(t *testing.T) {
	bin, err := program(nil)
	if err != nil {
		systemtest.Need(t, name, []system.Problem{{What: err.Error()}})
	}
	python := install.Interpreter(bin)
	if python == "" {
		t.Skipf("%s is no Python script", bin)
	}
	out, err := exec.Command(python, "-c", "import os, sys; print(os.path.dirname(os.__file__)); print(sys.prefix); "+
		"print(os.path.realpath(sys.executable))").Output()
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
