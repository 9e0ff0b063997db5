package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/internal/ui"
)

// What doctor --measure saves makes plan warn of a swarm that this machine limits.
func TestMeasureWarnsPlan(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	cache := t.TempDir()
	plimsoll := func(args ...string) (out string, code int) {
		c := exec.Command(os.Args[0], args...)
		c.Env = append(os.Environ(), "PLIMSOLL_TEST_MAIN=1", "PLIMSOLL_CACHE="+cache)
		b, _ := c.CombinedOutput()
		return string(b), c.ProcessState.ExitCode()
	}
	swarm := filepath.Join(t.TempDir(), "swarm.yaml")
	const file = `
scenario: disseminate
systems: [bittorrent]
link: {rate: 10Gbit, delay: 1ms}
data: {size: 64MiB}
disseminate: {nodes: 32, seeders: 1}
`
	if err := os.WriteFile(swarm, []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, _ := plimsoll("plan", swarm); !strings.Contains(out, "plimsoll doctor --measure") {
		t.Fatalf("plan does not say how to measure:\n%s", out)
	}
	out, code := plimsoll("doctor", "--measure", "--set", "limits.others=none", swarm)
	if code == int(ui.CodeInvalid) {
		t.Skipf("this machine is too busy:\n%s", out)
	}
	var saved map[string]map[string]float64
	b, err := os.ReadFile(filepath.Join(cache, "calibration.json"))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := json.Unmarshal(b, &saved); err != nil || len(saved) != 1 {
		t.Fatalf("%v: %s", err, b)
	}
	for _, systems := range saved {
		for _, name := range []string{"bittorrent", "boxo"} {
			if cost := systems[name]; !(cost > 0.1 && cost < 1000) || !strings.Contains(out, name+": ") {
				t.Errorf("%s: %v s per GB\n%s", name, cost, out)
			}
		}
	}
	if out, _ := plimsoll("plan", swarm); !strings.Contains(out, "this machine is expected to be the limit in 1 of 1 cells") {
		t.Errorf("plan does not warn:\n%s", out)
	}
}
