package deluge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/install"
)

// program is an installed Deluge.
type program struct {
	bin, python string // deluged, and the interpreter that finds the same Deluge
	// Versions of what decides what is measured.
	Deluge, Libtorrent, Twisted, Python string
}

// versionTime bounds asking for versions: a cold start of Python with these
// libraries takes seconds on a busy machine.
const versionTime = time.Minute

const askVersions = `import json, platform, deluge.common, libtorrent, twisted
print(json.dumps({"deluge": deluge.common.get_version(), "libtorrent": libtorrent.__version__,
    "twisted": twisted.__version__, "python": platform.python_version()}))`

// locate finds deluged and asks its interpreter for the versions of what runs under it.
func locate(ctx context.Context, opt system.Options) (p program, err error) {
	if p.bin, err = install.Locate(name, opt, "PLIMSOLL_DELUGE"); err != nil {
		return p, err
	}
	if p.python = install.Interpreter(p.bin); p.python == "" {
		return p, fmt.Errorf("deluge: %s is not a Python script that names its interpreter in the first line, as "+
			"deluged is", p.bin)
	}
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.python, "-c", askVersions)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		return p, fmt.Errorf("deluge: ask %s for the version of Deluge: %w: %s", p.python, err, lines[len(lines)-1])
	}
	if err := json.Unmarshal(out, &p); err != nil || p.Deluge == "" || p.Libtorrent == "" {
		return p, fmt.Errorf("deluge: %s gives no version of Deluge: %q", p.python, out)
	}
	return p, nil
}
