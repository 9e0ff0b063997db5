package main

import (
	"bufio"
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/internal/ui"
)

// TestDocsAreExecuted runs every command that the README and the documentation
// tell the reader to run (runs are made short) on the files they show.
func TestDocsAreExecuted(t *testing.T) {
	slow(t)
	t.Parallel()
	needs := map[string][]string{"load-test.md": {"versitygw"}, "retrieve.md": {"nginx"},
		"overhead.md": {"tahoe", "sshd", "nginx"}}
	for _, doc := range []string{"../../README.md", "../../docs/getting-started.md", "../../docs/retrieve.md",
		"../../docs/overhead.md", "../../docs/load-test.md", "../../docs/collect.md", "../../docs/disseminate.md",
		"../../docs/sync.md", "../../docs/compare.md"} {
		t.Run(filepath.Base(doc), func(t *testing.T) {
			need(t, needs[filepath.Base(doc)]...)
			t.Parallel()
			executeDoc(t, doc)
		})
	}
}

var (
	commandLine = regexp.MustCompile(`^    (bin/plimsoll [^#]*)`)
	fileName    = regexp.MustCompile(`^# ([a-z-]+\.(?:yaml|log)):`)
	runDir      = regexp.MustCompile(`runs/[a-z]+-\d{8}-\d{6}`)
)

// short makes a run of trials a short one.
const short = " --keep-going --set repetitions=1 --set warmup=0 --set limits.others=none --set limits.machine=none"

func executeDoc(t *testing.T, doc string) {
	url := serve(t, bytes.Repeat([]byte("plimsoll "), 2<<20), func(*http.Request) bool { return false })
	address := strings.TrimPrefix(url, "http://")
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "bin"), 0o755))
	exe, err := os.Executable()
	must(t, err)
	must(t, os.Symlink(exe, filepath.Join(dir, "bin/plimsoll")))
	// The file that getting-started takes over from the README.
	for _, text := range [][]byte{mustRead(t, "../../README.md"), mustRead(t, doc)} {
		writeYAML(t, dir, string(text), address)
	}
	n := 0
	s := bufio.NewScanner(bytes.NewReader(mustRead(t, doc)))
	for s.Scan() {
		m := commandLine.FindStringSubmatch(s.Text())
		if m == nil {
			continue
		}
		n++
		command := shortened(t, strings.TrimSpace(m[1]), address)
		if dirs, _ := filepath.Glob(filepath.Join(dir, "runs/*")); len(dirs) > 0 {
			command = runDir.ReplaceAllString(command, dirs[0])
		}
		c := exec.Command("sh", "-c", command)
		c.Dir = dir
		c.Env = append(os.Environ(), "PLIMSOLL_TEST_MAIN=1", "SIA_API_PASSWORD=secret", "TMPDIR="+t.TempDir())
		out, err := c.CombinedOutput()
		if code := c.ProcessState.ExitCode(); err != nil && code != int(ui.CodeInvalid) &&
			code != int(ui.CodeUndecided) {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
	runs, _ := filepath.Glob(filepath.Join(dir, "runs/*/run.db"))
	for _, db := range runs {
		recomputed(t, filepath.Dir(db))
	}
	if n == 0 {
		t.Errorf("no commands were found in %s", doc)
	}
}

// shortened is a command whose run takes a moment, on servers of the test.
func shortened(t *testing.T, command, address string) string {
	switch {
	case strings.HasPrefix(command, "bin/plimsoll collect "):
		command = strings.ReplaceAll(command, "http://127.0.0.1:9980", recordedSiad(t))
		command = strings.ReplaceAll(command, "--for 25d", "--for 1s --every 200ms --listen none")
	case strings.HasPrefix(command, "bin/plimsoll bench "):
		command = strings.ReplaceAll(command, "127.0.0.1:8080", address)
		command = strings.ReplaceAll(command, "-c 1,10,100 -d 10s", "-c 2 -d 50ms")
	case !strings.HasPrefix(command, "bin/plimsoll run "):
	case strings.Contains(command, "load-test"), strings.Contains(command, "sia-"):
		command += " --set data.objects=" + map[bool]string{false: "20",
			true: "1"}[strings.Contains(command, "best-case")]
	case strings.Contains(command, "object-cost"):
		command += short + " --set overhead.count=1 --set link.delay=2.5ms --set data.size=1kB"
	case strings.Contains(command, "tahoe-overhead"):
		command += short + " --set overhead.operation=put --set data.size=56B --set link.delay=2.5ms"
	case strings.Contains(command, "boost-retrieval"):
		command += short + " --set data.size=1MiB --set retrieve.range=64KiB --set retrieve.concurrency=10 " +
			"--set retrieve.bytes=64KiB"
	case strings.Contains(command, "codex-dissemination"):
		command += short + " --set systems=bittorrent,fanout --set disseminate.nodes=2 --set " +
			"disseminate.seeders=1 --set disseminate.seeder_sets=1 --set data.size=128KiB"
	case strings.Contains(command, "swarm"):
		command += short + " --set systems=fanout --set disseminate.nodes=2,3 --set data.size=128KiB --set " +
			"disseminate.faults=none"
	case strings.Contains(command, "fresh"):
		command += short + " --set sync.blocks=100 --set sync.peers=2 --set sync.storage=disk --set " +
			"'sync.vary={subscriber: [full, none]}'"
	case strings.Contains(command, "replay"):
		command += short
	default:
		command += short + " --set retrieve.duration=50ms --set retrieve.concurrency=2"
	}
	return command
}

// writeYAML writes the experiment files that a text shows, each named in its
// first line.
func writeYAML(t *testing.T, dir, text, address string) {
	t.Helper()
	for block := range strings.SplitSeq(strings.ReplaceAll(text, "```text\n", "```yaml\n"), "```yaml\n") {
		yaml, _, found := strings.Cut(block, "```")
		m := fileName.FindStringSubmatch(yaml)
		if !found || m == nil {
			continue
		}
		yaml = strings.ReplaceAll(yaml, "127.0.0.1:8080", address)
		must(t, os.WriteFile(filepath.Join(dir, m[1]), []byte(yaml), 0o644))
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return b
}
