package install

import (
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/plimsoll-project/plimsoll/system"
)

// Locate finds the command of a program: the one that option "binary" or the
// environment variable env names, that of Install, or one in PATH.
func Locate(name string, opt system.Options, env string) (string, error) {
	if bin, err := system.Named(name, opt, "binary", env); bin != "" || err != nil {
		return bin, err
	}
	p, _ := ByName(name)
	if dir, ok := Find(name); ok {
		return filepath.Join(dir, p.Command), nil
	}
	path, err := exec.LookPath(p.Command)
	if err != nil {
		return "", fmt.Errorf("%s: not installed by plimsoll and not found in PATH", name)
	}
	return path, nil
}
