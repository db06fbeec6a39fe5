package sim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podsource/manifest"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// A Shape describes a pod as plain data, with a text of one line:
//
//	policy=Never grace=5 init:a=exit=0@1s side:b=run main:c=exit=3@2s/OnFailure/3:Restart hook:b=20s
type Shape struct {
	// Policy is the pod's restartPolicy. Empty means Always.
	Policy v1.RestartPolicy

	// Grace is its terminationGracePeriodSeconds; zero means 30. Deadline is its
	// activeDeadlineSeconds; zero means none.
	Grace, Deadline int64

	// Volumes is the number of its volumes, each of which is mounted in all containers.
	Volumes int64

	// Claims are the names of its ResourceClaims, which all containers use. Pods with the
	// same name in Claims share the claim. The part before the first "-" is the name of
	// the driver.
	Claims []string

	// Static is true if the pod is from a manifest instead of the API.
	Static bool

	// Containers in the order of the spec, init containers first.
	Containers []Container
}

// A Container of a Shape.
type Container struct {
	Kind     ContainerKind
	Name     string
	CPU      int64 // request, in thousandths of a CPU; zero: none
	Behavior fake.Behavior

	// Policy is the container's restartPolicy; empty means that the pod's applies.
	// Rules are its restartPolicyRules.
	Policy v1.ContainerRestartPolicy
	Rules  []Rule

	// Hook is the duration of its postStart hook; zero: it has none. Memory runs no hooks.
	Hook time.Duration
}

// A Rule is a restart rule for exits with Code.
type Rule struct {
	Code   int32
	Action v1.ContainerRestartRuleAction
}

// A ContainerKind is the role of a container in its pod.
type ContainerKind string

// The kinds of containers.
const (
	Init    ContainerKind = "init" // runs to completion before the next container starts
	Sidecar ContainerKind = "side" // starts in the order of the init containers and keeps running
	Main    ContainerKind = "main"
)

// String returns the text of s.
func (s Shape) String() string {
	var w []string
	if s.Static {
		w = append(w, "static")
	}
	if s.Policy != "" {
		w = append(w, "policy="+string(s.Policy))
	}
	if s.Grace != 0 {
		w = append(w, fmt.Sprintf("grace=%d", s.Grace))
	}
	if s.Deadline != 0 {
		w = append(w, fmt.Sprintf("deadline=%d", s.Deadline))
	}
	if s.Volumes != 0 {
		w = append(w, fmt.Sprintf("volumes=%d", s.Volumes))
	}
	if len(s.Claims) > 0 {
		w = append(w, "claims="+strings.Join(s.Claims, ","))
	}
	for _, c := range s.Containers {
		w = append(w, c.String())
	}
	for _, c := range s.Containers {
		if c.Hook > 0 {
			w = append(w, fmt.Sprintf("hook:%s=%v", c.Name, c.Hook))
		}
	}
	return strings.Join(w, " ")
}

// String returns the container's part of the text of its Shape.
func (c Container) String() string {
	name := c.Name
	if c.CPU > 0 {
		name += fmt.Sprintf(":%d", c.CPU)
	}
	text := fmt.Sprintf("%s:%s=%s", c.Kind, name, c.Behavior)
	if c.Policy != "" || len(c.Rules) > 0 {
		text += "/" + string(c.Policy)
	}
	for _, r := range c.Rules {
		text += fmt.Sprintf("/%d:%s", r.Code, r.Action)
	}
	return text
}

// parseWord parses one word of the text of a Shape. ok is false if the word is not part
// of a Shape.
func (s *Shape) parseWord(word string) (ok bool, err error) {
	key, value, _ := strings.Cut(word, "=")
	kind, name, isContainer := strings.Cut(key, ":")
	switch {
	case word == "static":
		s.Static = true
	case key == "policy":
		s.Policy = v1.RestartPolicy(value)
		if !slices.Contains([]v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever}, s.Policy) {
			err = errors.New("no such restart policy")
		}
	case key == "grace":
		s.Grace, err = parseNatural(value)
	case key == "deadline":
		s.Deadline, err = parseNatural(value)
	case key == "volumes":
		if s.Volumes, err = parseNatural(value); err == nil && s.Volumes > maxVolumes {
			err = errors.New("out of range")
		}
	case key == "claims":
		s.Claims = strings.Split(value, ",")
		if slices.Contains(s.Claims, "") {
			err = errors.New("a name is empty")
		}
	case kind == "hook":
		i := slices.IndexFunc(s.Containers, func(c Container) bool { return c.Name == name })
		if i < 0 {
			return true, fmt.Errorf("no container %q before it", name)
		}
		s.Containers[i].Hook, err = parsePositive(value)
	case isContainer:
		var c Container
		if c, err = parseContainer(ContainerKind(kind), name, value); err == nil {
			s.Containers = append(s.Containers, c)
		}
	default:
		return false, nil
	}
	return true, err
}

// maxVolumes bounds the volumes of a pod.
const maxVolumes = 100

func parseNatural(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && (n < 0 || n > 1<<31) {
		err = errors.New("out of range")
	}
	return n, err
}

func parsePositive(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil && d <= 0 {
		err = errors.New("not positive")
	}
	return d, err
}

func parseContainer(kind ContainerKind, name, text string) (Container, error) {
	c := Container{Kind: kind}
	var cpu string
	var requests bool
	c.Name, cpu, requests = strings.Cut(name, ":")
	if kind != Init && kind != Sidecar && kind != Main {
		return c, fmt.Errorf("containers are %s, %s or %s", Init, Sidecar, Main)
	}
	parts := strings.Split(text, "/")
	var err error
	if requests {
		if c.CPU, err = parseNatural(cpu); err != nil {
			return c, err
		}
	}
	if c.Behavior, err = parseBehavior(parts[0]); err != nil {
		return c, err
	}
	if len(parts) > 1 {
		c.Policy = v1.ContainerRestartPolicy(parts[1])
		for _, rule := range parts[2:] {
			code, action, _ := strings.Cut(rule, ":")
			n, err := strconv.ParseInt(code, 10, 32)
			if err != nil {
				return c, fmt.Errorf("rule %q: %w", rule, err)
			}
			c.Rules = append(c.Rules, Rule{int32(n), v1.ContainerRestartRuleAction(action)})
		}
	}
	return c, nil
}

// Pod returns a pod of this shape, with the defaults of the API server.
func (s Shape) Pod(name string, uid types.UID) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: v1.NamespaceDefault, UID: uid},
		Spec:       v1.PodSpec{RestartPolicy: s.Policy},
	}
	if s.Grace > 0 {
		pod.Spec.TerminationGracePeriodSeconds = new(s.Grace)
	}
	if s.Deadline > 0 {
		pod.Spec.ActiveDeadlineSeconds = new(s.Deadline)
	}
	var mounts []v1.VolumeMount
	for i := range s.Volumes {
		name := fmt.Sprint("v", i)
		pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
		mounts = append(mounts, v1.VolumeMount{Name: name, MountPath: "/" + name})
	}
	for _, c := range s.Containers {
		v := v1.Container{VolumeMounts: mounts, Name: c.Name, Image: Image(c.Behavior)}
		if c.CPU > 0 {
			v.Resources.Requests = cpuList(c.CPU)
		}
		if c.Policy != "" {
			v.RestartPolicy = new(c.Policy)
		}
		for _, r := range c.Rules {
			v.RestartPolicyRules = append(v.RestartPolicyRules, v1.ContainerRestartRule{
				Action:    r.Action,
				ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{r.Code}},
			})
		}
		if c.Hook > 0 {
			v.Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{hookCommand, c.Hook.String()}}}}
		}
		if c.Kind != Init {
			declareProbes(c.Behavior, &v)
		}
		switch c.Kind {
		case Sidecar:
			v.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
			fallthrough
		case Init:
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, v)
		default:
			pod.Spec.Containers = append(pod.Spec.Containers, v)
		}
	}
	addClaims(pod, s.Claims)
	return manifest.Default(pod)
}
