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

// What the documentation tells CI services to do is done, as they do it: with a
// gate that passes, one that fails and one that no number of trials can decide.
func TestExamplesOfCIAreExecuted(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	doc := string(mustRead(t, "../../docs/compare.md"))
	var github struct {
		Jobs map[string]struct {
			Steps []struct{ Run string }
		}
	}
	ciExample(t, doc, "GitHub Actions", &github)
	var steps []string
	for _, job := range github.Jobs {
		for _, s := range job.Steps {
			if s.Run != "" {
				steps = append(steps, s.Run)
			}
		}
	}
	var gitlab map[string]struct {
		Script       []string
		AllowFailure struct {
			ExitCodes []int `yaml:"exit_codes"`
		} `yaml:"allow_failure"`
	}
	ciExample(t, doc, "GitLab", &gitlab)
	for _, c := range []struct {
		service, shell string
		steps          []string
		// The status of the step when a gate fails, and when it cannot be decided.
		failed, undecided int
	}{
		{"GitHub Actions", "bash -e", steps, 1, 0},
		{"GitLab", "bash -eo pipefail", gitlab["storage"].Script, 4, 10},
	} {
		t.Run(c.service, func(t *testing.T) {
			t.Parallel()
			if len(c.steps) < 2 {
				t.Fatalf("steps: %q", c.steps)
			}
			at := slices.IndexFunc(c.steps, func(s string) bool { return strings.Contains(s, "--gate") })
			if at < 0 {
				t.Fatalf("no step asks for a gate: %q", c.steps)
			}
			job := newCIJob(t, c.shell)
			for _, s := range c.steps[:at] {
				if status, out := job.run(t, s); status != 0 {
					t.Fatalf("status %d:\n%s\n%s", status, s, out)
				}
			}
			gate := regexp.MustCompile(`--gate '[^']*'`)
			for rule, want := range map[string]int{"success > 10%": 0, "accepted > 900": c.failed, "success >= 100%": c.undecided} {
				for i, s := range c.steps[at:] {
					status, out := job.run(t, gate.ReplaceAllString(s, "--gate '"+rule+"'"))
					if i == 0 && status != want || i > 0 && status != 0 {
						t.Errorf("%s: step %d ends with status %d, the job with %d:\n%s", rule, i+1, status, want, out)
					}
				}
				if got := string(mustRead(t, filepath.Join(job.dir, "comment.md"))); !strings.Contains(got, rule) {
					t.Errorf("comment.md lacks %q", rule)
				}
			}
			if c.service == "GitHub Actions" && !strings.Contains(string(mustRead(t, filepath.Join(job.dir, "summary"))), "**Gates**") {
				t.Error("the summary of the job has no gates")
			}
		})
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

// ciJob is a place in which a CI service would run steps. make and git are ours:
// one puts the program where a build would, the other has every commit.
type ciJob struct {
	dir   string
	shell []string
	env   []string
}

func newCIJob(t *testing.T, shell string) *ciJob {
	t.Helper()
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("small.yaml", tinyFile)
	write("tools/make", "#!/bin/sh\n[ \"$*\" = build ] && mkdir -p bin && printf '#!/bin/sh\\nexec %s \"$@\"\\n' '"+exe+"' > bin/plimsoll && chmod +x bin/plimsoll\n")
	write("tools/git", "#!/bin/sh\n[ \"$*\" = 'checkout 0123abc' ]\n")
	return &ciJob{dir, strings.Fields(shell), append(os.Environ(), "PLIMSOLL_TEST_MAIN=1", "PATH="+filepath.Join(dir, "tools")+":"+os.Getenv("PATH"),
		"RUNNER_TEMP="+dir, "GITHUB_STEP_SUMMARY="+filepath.Join(dir, "summary"), "CI_MERGE_REQUEST_DIFF_BASE_SHA=0123abc")}
}

// run executes one step and returns its status.
func (j *ciJob) run(t *testing.T, step string) (int, string) {
	t.Helper()
	step = strings.ReplaceAll(step, "${{ github.event.pull_request.base.sha }}", "0123abc")
	script := filepath.Join(j.dir, "step.sh")
	if err := os.WriteFile(script, []byte(step), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), j.shell[0], append(slices.Clone(j.shell[1:]), script)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = j.dir, j.env, 5*time.Second
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", step, err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}
