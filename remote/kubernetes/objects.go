package kubernetes

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"strconv"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plimsoll-project/plimsoll/remote"
)

const (
	runLabel       = "plimsoll.run" // of every object and pod, with the run's ID
	container      = "agent"
	program        = "plimsoll" // in the PATH of the image
	agentPort      = 7700
	workDir        = "/work"
	credentialsDir = "/credentials"
	credentialsKey = "agent"
)

// longest is how long a run may last. Agents end long before, when their engine has: this is for
// an engine that hangs unseen.
const longest = 30 * 24 * 3600

// kept is for how many seconds a Job that has ended can be looked at.
const kept = 3600

// objects are all that a run has in the cluster, but for its pods.
type objects struct {
	namespace *core.Namespace
	job       *batch.Job
	account   *core.ServiceAccount
	secret    *core.Secret
	policy    *networking.NetworkPolicy
}

func (c *Cluster) objects(spec remote.Spec) (objects, error) {
	var credentials bytes.Buffer
	if err := gob.NewEncoder(&credentials).Encode(spec.Credentials); err != nil {
		return objects{}, fmt.Errorf("kubernetes: %w", err)
	}
	name, labels := nameOf(spec.Run), map[string]string{runLabel: spec.Run, "app.kubernetes.io/name": "plimsoll"}
	about := meta.ObjectMeta{Name: name, Labels: labels}
	o := objects{
		namespace: &core.Namespace{ObjectMeta: *about.DeepCopy()},
		// One of our own, without a token: the namespace's comes later than the namespace.
		account: &core.ServiceAccount{ObjectMeta: about, AutomountServiceAccountToken: new(bool)},
		secret:  &core.Secret{ObjectMeta: about, Data: map[string][]byte{credentialsKey: credentials.Bytes()}},
		policy: &networking.NetworkPolicy{ObjectMeta: about, Spec: networking.NetworkPolicySpec{
			PodSelector: meta.LabelSelector{MatchLabels: map[string]string{runLabel: spec.Run}},
			PolicyTypes: []networking.PolicyType{networking.PolicyTypeIngress},
			Ingress: []networking.NetworkPolicyIngressRule{{From: []networking.NetworkPolicyPeer{
				{PodSelector: &meta.LabelSelector{MatchLabels: map[string]string{runLabel: spec.Run}}},
			}}},
		}},
	}
	o.namespace.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	n := int32(spec.Machines)
	o.job = &batch.Job{ObjectMeta: about, Spec: batch.JobSpec{
		Completions: &n, Parallelism: &n, CompletionMode: ptr(batch.IndexedCompletion), Suspend: ptr(true),
		// An agent that was killed begins again in its pod, with its files.
		BackoffLimit:          ptr[int32](1 << 20),
		ActiveDeadlineSeconds: ptr[int64](longest), TTLSecondsAfterFinished: ptr[int32](kept),
		Template: core.PodTemplateSpec{ObjectMeta: meta.ObjectMeta{Labels: labels}, Spec: c.podSpec(name, spec.Run)},
	}}
	return o, nil
}

func (c *Cluster) podSpec(name, run string) core.PodSpec {
	cpu, memory := "1", "512Mi"
	if c.pack {
		cpu, memory = "50m", "64Mi"
	}
	spec := core.PodSpec{
		RestartPolicy: core.RestartPolicyOnFailure, ServiceAccountName: name,
		AutomountServiceAccountToken: new(bool), EnableServiceLinks: new(bool),
		TerminationGracePeriodSeconds: ptr[int64](5),
		SecurityContext: &core.PodSecurityContext{
			RunAsNonRoot: ptr(true), RunAsUser: ptr[int64](65532), RunAsGroup: ptr[int64](65532),
			FSGroup:        ptr[int64](65532),
			SeccompProfile: &core.SeccompProfile{Type: core.SeccompProfileTypeRuntimeDefault},
		},
		Volumes: []core.Volume{
			{Name: "credentials", VolumeSource: core.VolumeSource{
				Secret: &core.SecretVolumeSource{SecretName: name, DefaultMode: ptr[int32](0o440)},
			}},
			{Name: "work", VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}},
			{Name: "tmp", VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}},
		},
		Containers: []core.Container{{
			Name: container, Image: c.image, ImagePullPolicy: core.PullIfNotPresent,
			Command: []string{program, "node", "agent", "--listen", "tcp::" + strconv.Itoa(agentPort),
				"--name", "pod$(JOB_COMPLETION_INDEX)", "--address", "$(ADDRESS)", "--dir", workDir,
				"--credentials", credentialsDir + "/" + credentialsKey, "--keep", workDir + "/" + remote.RunDir},
			WorkingDir: workDir,
			Env: []core.EnvVar{
				{Name: "HOME", Value: workDir}, field("ADDRESS", "status.podIP"),
			},
			VolumeMounts: []core.VolumeMount{
				{Name: "credentials", MountPath: credentialsDir, ReadOnly: true},
				{Name: "work", MountPath: workDir}, {Name: "tmp", MountPath: "/tmp"},
			},
			// It asks until the agent listens, and never after that: a question costs time.
			StartupProbe: &core.Probe{
				ProbeHandler:  core.ProbeHandler{TCPSocket: &core.TCPSocketAction{Port: intstr.FromInt32(agentPort)}},
				PeriodSeconds: 1, FailureThreshold: 60,
			},
			// No limits: who is throttled measures the limit.
			Resources: core.ResourceRequirements{Requests: core.ResourceList{
				core.ResourceCPU: resource.MustParse(cpu), core.ResourceMemory: resource.MustParse(memory),
			}},
			SecurityContext: &core.SecurityContext{
				AllowPrivilegeEscalation: new(bool), ReadOnlyRootFilesystem: ptr(true),
				Capabilities: &core.Capabilities{Drop: []core.Capability{"ALL"}},
			},
		}},
	}
	same := &meta.LabelSelector{MatchLabels: map[string]string{runLabel: run}}
	if c.pack {
		spec.TopologySpreadConstraints = []core.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: core.LabelHostname, WhenUnsatisfiable: core.ScheduleAnyway, LabelSelector: same,
		}}
	} else {
		spec.Affinity = &core.Affinity{PodAntiAffinity: &core.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []core.PodAffinityTerm{
				{TopologyKey: core.LabelHostname, LabelSelector: same},
			},
		}}
	}
	return spec
}

func field(name, path string) core.EnvVar {
	return core.EnvVar{Name: name, ValueFrom: &core.EnvVarSource{FieldRef: &core.ObjectFieldSelector{FieldPath: path}}}
}

func ptr[T any](v T) *T { return &v }
