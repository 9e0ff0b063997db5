package kubernetes

import (
	_ "embed"
	"encoding/base64"
	"fmt"
	"strings"
	"text/template"

	"github.com/goccy/go-yaml"

	"github.com/plimsoll-project/plimsoll/remote"
)

// Names that objects.yaml contains, too.
const (
	runLabel      = "plimsoll.run"   // on every object and pod, with the run's ID
	linksLabel    = "plimsoll.links" // on pods with emulated links between them
	enforceLabel  = "pod-security.kubernetes.io/enforce"
	containerName = "agent"
	program       = "plimsoll" // in the PATH of the image
	agentPort     = 7700
	workDir       = "/plimsoll"
)

//go:embed objects.yaml
var objectsYAML string

var objectsTemplate = template.Must(template.New("objects.yaml").Parse(objectsYAML))

// objects returns all objects of a run except its pods: its namespace, its job, and the objects
// that the job owns.
func (c *Cluster) objects(spec remote.Spec) (all []map[string]any, err error) {
	var text strings.Builder
	name := nameOf(spec.Run)
	about := fmt.Sprintf("{name: %s, labels: {%s: %s, app.kubernetes.io/name: plimsoll}}", name, runLabel, spec.Run)
	err = objectsTemplate.Execute(&text, struct {
		remote.Spec
		Options
		Name, About, Keep, Credentials string
	}{spec, c.opt, name, about, remote.RunDir, base64.StdEncoding.EncodeToString(spec.Credentials.Encoded())})
	if err != nil {
		return nil, err
	}
	for one := range strings.SplitSeq(text.String(), "\n---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(one), &o); err != nil {
			return nil, fmt.Errorf("kubernetes: objects.yaml: %w", err)
		}
		all = append(all, o)
	}
	return all, nil
}
