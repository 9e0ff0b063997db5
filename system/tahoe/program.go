package tahoe

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/install"
)

// program finds tahoe.
func program(opt system.Options) (string, error) { return install.Locate(name, opt, "PLIMSOLL_TAHOE") }

// versionTime bounds asking for versions: a cold start of Python with these
// libraries takes seconds on a busy machine.
const versionTime = time.Minute

// libraries whose versions decide what is measured.
const askLibraries = `import importlib.metadata as m, json, platform
names = "tahoe-lafs", "Twisted", "foolscap", "zfec", "cryptography"
print(json.dumps(dict({n: m.version(n) for n in names}, Python=platform.python_version())))`

// versions asks the interpreter that runs bin for the versions of its
// libraries. Not every installation is a script: then only tahoe's own is known.
func versions(ctx context.Context, bin string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	found := map[string]string{}
	if python := install.Interpreter(bin); python != "" {
		if out, err := exec.CommandContext(ctx, python, "-c", askLibraries).Output(); err == nil &&
			json.Unmarshal(out, &found) == nil && found["tahoe-lafs"] != "" {
			return found, nil
		}
	}
	out, err := exec.CommandContext(ctx, bin, "--version").CombinedOutput()
	said := strings.TrimSpace(string(out))
	if err != nil {
		return nil, fmt.Errorf("tahoe: %s --version: %w: %s", bin, err, said)
	}
	v, ok := strings.CutPrefix(said, "tahoe-lafs/")
	if !ok {
		return nil, fmt.Errorf("tahoe: %s --version gives no version: %q", bin, said)
	}
	return map[string]string{"tahoe-lafs": v}, nil
}
