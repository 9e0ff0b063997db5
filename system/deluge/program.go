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

// program finds deluged.
func program(opt system.Options) (string, error) { return install.Locate(name, opt, "PLIMSOLL_DELUGE") }

// interpreter is what the launcher runs under, so that it finds the same Deluge.
func interpreter(bin string) (string, error) {
	if python := install.Interpreter(bin); python != "" {
		return python, nil
	}
	return "", fmt.Errorf("deluge: %s is not a Python script that names its interpreter in the first line, as deluged is", bin)
}

// versionTime bounds asking for versions: a cold start of Python with these
// libraries takes seconds on a busy machine.
const versionTime = time.Minute

// libraries whose versions decide what is measured.
const askLibraries = `import json, platform, deluge.common, libtorrent, twisted
print(json.dumps({"deluge": deluge.common.get_version(), "libtorrent": libtorrent.__version__, "Twisted": twisted.__version__, "Python": platform.python_version()}))`

// versions asks the interpreter for the versions of what runs under it.
func versions(ctx context.Context, python string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-c", askLibraries)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("deluge: ask %s for the version of Deluge: %w: %s", python, err, lastLine(said.String()))
	}
	found := map[string]string{}
	if err := json.Unmarshal(out, &found); err != nil || found["deluge"] == "" || found["libtorrent"] == "" {
		return nil, fmt.Errorf("deluge: %s gives no version of Deluge: %q", python, out)
	}
	return found, nil
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
