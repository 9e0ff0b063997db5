package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// scripts/bench.sh finds the k6 that it builds, whatever PATH its caller has.
func TestScriptFindsTheK6ItBuilds(t *testing.T) {
	root := t.TempDir()
	script, err := os.ReadFile("../scripts/bench.sh")
	if err != nil {
		t.Fatal(err)
	}
	// A stand-in for go: install makes a k6, run needs one.
	fake := "#!/bin/sh\nset -e\ncase $1 in\n" +
		"install) mkdir -p \"$GOBIN\"; printf '#!/bin/sh\\n' >\"$GOBIN/k6\"; chmod +x \"$GOBIN/k6\" ;;\n" +
		"run) command -v k6 ;;\nesac\n"
	for name, content := range map[string]string{"scripts/bench.sh": string(script), "path/go": fake} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(root, "scripts/bench.sh"), "load")
	cmd.Env = []string{"PATH=" + filepath.Join(root, "path") + ":/usr/bin:/bin"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
