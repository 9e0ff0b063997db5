package main

import (
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// The example for GitHub gives the action what it asks for, and nothing that it does not know.
func TestExampleOfTheAction(t *testing.T) {
	var action struct {
		Inputs map[string]struct{ Required bool }
	}
	must(t, yaml.Unmarshal(mustRead(t, "../../action/action.yml"), &action))
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
	var gitlab map[string]struct{ Script []string }
	ciExample(t, string(mustRead(t, "../../docs/compare.md")), "GitLab", &gitlab)
	commands := 0
	for _, step := range gitlab["storage"].Script {
		for line := range strings.Lines(step) {
			for _, program := range []string{"./base ", "./new "} {
				if words, is := strings.CutPrefix(line, program); is {
					commands++
					must(t, parses(strings.Fields(words)))
				}
			}
		}
	}
	if commands < 2 {
		t.Errorf("the example for GitLab has %d commands", commands)
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
