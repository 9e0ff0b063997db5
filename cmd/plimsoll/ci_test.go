package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// tinyFile is run in CI's examples in place of the documentation's experiment: a
// second of uploads, which is valid on a busy machine, too.
const tinyFile = `
scenario: upload
systems: [static]
data: {objects: 5, size: 10kB}
upload: {concurrency: 2}
repetitions: 5
limits: {others: none, machine: none}
skip: [machine]
`

// The example for GitHub gives the action what it asks for, and nothing that it does not know.
func TestExampleOfTheAction(t *testing.T) {
	var action struct {
		Inputs map[string]struct{ Required bool }
	}
	check(t, yaml.Unmarshal(mustRead(t, "../../action/action.yml"), &action))
	var example struct {
		Jobs map[string]struct {
			Steps []struct {
				Uses string
				With map[string]any
			}
		}
	}
	ciExample(t, string(mustRead(t, "../../docs/compare.md")), "GitHub Actions", &example)
	found := false
	for _, step := range example.Jobs["storage"].Steps {
		if !strings.HasPrefix(step.Uses, "plimsoll-project/plimsoll/action@") {
			continue
		}
		found = true
		for name := range step.With {
			if _, ok := action.Inputs[name]; !ok {
				t.Errorf("the action has no input %s", name)
			}
		}
		for name, input := range action.Inputs {
			if _, ok := step.With[name]; input.Required && !ok {
				t.Errorf("the example lacks the input %s", name)
			}
		}
	}
	if !found {
		t.Error("the example does not use the action")
	}
}

// What the documentation tells GitLab to do is done, as it does it: with a gate
// that passes, one that fails and one that no number of trials can decide.
func TestExampleOfGitLabIsExecuted(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	t.Parallel()
	var gitlab map[string]struct {
		Script       []string
		AllowFailure struct {
			ExitCodes []int `yaml:"exit_codes"`
		} `yaml:"allow_failure"`
	}
	ciExample(t, string(mustRead(t, "../../docs/compare.md")), "GitLab", &gitlab)
	steps := gitlab["storage"].Script
	at := slices.IndexFunc(steps, func(s string) bool { return strings.Contains(s, "--gate") })
	if at < 1 || at != len(steps)-1 {
		t.Fatalf("the last of several steps does not ask for a gate: %q", steps)
	}
	job := newCIJob(t)
	for _, s := range steps[:at] {
		if status, out := job.run(t, s); status != 0 {
			t.Fatalf("status %d:\n%s\n%s", status, s, out)
		}
	}
	gate := regexp.MustCompile(`--gate '[^']*'`)
	for rule, want := range map[string]int{"success > 10%": 0, "accepted > 900": 4, "success >= 100%": 10} {
		if status, out := job.run(t, gate.ReplaceAllString(steps[at], "--gate '"+rule+"'")); status != want {
			t.Errorf("%s: the job ends with status %d, want %d:\n%s", rule, status, want, out)
		}
		if got := string(mustRead(t, filepath.Join(job.dir, "comment.md"))); !strings.Contains(got, rule) {
			t.Errorf("comment.md lacks %q", rule)
		}
	}
	if codes := gitlab["storage"].AllowFailure.ExitCodes; !slices.Equal(codes, []int{10}) {
		t.Errorf("GitLab lets %v pass", codes)
	}
}

// ciExample reads the YAML below a heading.
func ciExample(t *testing.T, doc, heading string, into any) {
	t.Helper()
	_, below, ok := strings.Cut(doc, "### "+heading+"\n")
	_, below, found := strings.Cut(below, "```yaml\n")
	text, _, closed := strings.Cut(below, "```")
	if !ok || !found || !closed {
		t.Fatalf("docs/compare.md has no example for %s", heading)
	}
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%s: %v", heading, err)
	}
}

// ciJob is a place in which GitLab would run steps. make and git are ours:
// one puts the program where a build would, the other has every commit.
type ciJob struct {
	dir string
	env []string
}

func newCIJob(t *testing.T) *ciJob {
	t.Helper()
	dir := t.TempDir()
	exe, err := os.Executable()
	check(t, err)
	write := func(name, text string) {
		check(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	write("small.yaml", tinyFile)
	write("tools/make", "#!/bin/sh\n[ \"$*\" = build ] && mkdir -p bin && printf '#!/bin/sh\\nexec %s \"$@\"\\n' "+
		"'"+exe+"' > bin/plimsoll && chmod +x bin/plimsoll\n")
	write("tools/git", "#!/bin/sh\n[ \"$*\" = 'checkout 0123abc' ]\n")
	return &ciJob{dir, append(os.Environ(), "PLIMSOLL_TEST_MAIN=1",
		"PATH="+filepath.Join(dir, "tools")+":"+os.Getenv("PATH"),
		"CI_MERGE_REQUEST_DIFF_BASE_SHA=0123abc")}
}

// run executes one step and returns its status.
func (j *ciJob) run(t *testing.T, step string) (int, string) {
	t.Helper()
	script := filepath.Join(j.dir, "step.sh")
	check(t, os.WriteFile(script, []byte(step), 0o644))
	cmd := exec.CommandContext(t.Context(), "bash", "-eo", "pipefail", script)
	cmd.Dir, cmd.Env, cmd.WaitDelay = j.dir, j.env, 5*time.Second
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", step, err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}
