package oracle

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/sim"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// This file translates the vocabulary of package sim to that of package fakecri.

// nodeName is the name of the node.
const nodeName = "oracle"

// probeCommand is the first word of the commands of probes, which the runtime of a scenario
// evaluates.
const probeCommand = "probe"

// pod returns the pod of a step that adds one.
func (s Step) pod() *v1.Pod {
	pod := s.Shape.Pod(s.Pod, "")
	pod.ObjectMeta = metav1.ObjectMeta{Name: s.Pod, Namespace: metav1.NamespaceDefault}
	pod.Spec.NodeName, pod.Spec.DNSPolicy = nodeName, v1.DNSDefault
	pod.Spec.EnableServiceLinks = new(false)
	pod.Spec.AutomountServiceAccountToken = new(false)
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			c := &list[i]
			for _, kind := range []prober.Kind{prober.Startup, prober.Readiness, prober.Liveness} {
				if p := kind.Probe(c); p != nil {
					p.Exec.Command = []string{probeCommand, kind.String()}
				}
			}
		}
	}
	return pod
}

// ephemeral returns the container of a step that attaches one.
func (s Step) ephemeral() v1.EphemeralContainer {
	return v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{
		Name: s.Container, Image: sim.Image(s.Behavior), ImagePullPolicy: v1.PullIfNotPresent,
		TerminationMessagePolicy: v1.TerminationMessageReadFile, TerminationMessagePath: v1.TerminationMessagePathDefault,
	}}
}

// behaviors returns how the containers of a scenario run, by their images. A machine answers the probes.
func (s Scenario) behaviors() fake.Behaviors {
	out := fake.Behaviors{Images: map[string]fake.Behavior{}}
	add := func(b fake.Behavior) {
		out.Images[sim.Image(b)] = fake.Behavior{StartDelay: b.StartDelay, StopDelay: b.StopDelay, IgnoreTERM: b.IgnoreTERM, Exit: b.Exit, Exec: sim.Exec}
	}
	for _, step := range s {
		if step.Do == sim.Change {
			add(step.Behavior)
		}
		for _, c := range step.Shape.Containers {
			add(c.Behavior)
		}
	}
	return out
}

// passes reports whether a probe of a container succeeds at a time after its start.
func passes(image string, kind string, age time.Duration) bool {
	b, err := sim.ImageBehavior(image)
	switch {
	case err != nil:
		return true
	case kind == prober.Startup.String():
		return age >= b.StartedAfter
	case kind == prober.Readiness.String():
		return age >= b.ReadyAfter
	}
	return b.UnhealthyAfter == 0 || age < b.UnhealthyAfter
}

// becomesSick reports whether a liveness probe of a pod fails sooner or later.
func becomesSick(pod *v1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c v1.Container) bool {
		b, err := sim.ImageBehavior(c.Image)
		return err == nil && b.UnhealthyAfter > 0
	})
}

// criFault returns the fault of a step for a call of the CRI; false if the step has none for it.
func (s Step) criFault(c fake.Call) (fake.Fault, bool) {
	if s.Do != sim.Fault || s.Calls != c.Method && s.Calls != criCalls {
		return fake.Fault{}, false
	}
	failed := status.Error(codes.Unavailable, "fault of the scenario")
	switch s.Kind {
	case sim.Error:
		return fake.Fault{Err: failed}, true
	case sim.Lost:
		return fake.Fault{Lost: true, Err: failed}, true
	case sim.Slow:
		return fake.Fault{Delay: s.Delay}, true
	case sim.Hung:
		return fake.Fault{Hang: true}, true
	}
	if slices.Contains([]string{"ListContainers", "ListPodSandbox"}, c.Method) {
		return fake.Fault{Stale: s.Delay}, true
	}
	return fake.Fault{}, false
}

// containerID returns the ID of a container as in the status of a pod.
func containerID(id string) string { return runtimeName + "://" + id }

// runtimeName is the name of the runtime.
const runtimeName = "fakecri"

// short abbreviates an ID for timelines.
func short(id string) string {
	id = strings.TrimPrefix(id, runtimeName+"://")
	return id[:min(len(id), 6)]
}
