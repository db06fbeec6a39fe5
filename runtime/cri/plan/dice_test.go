package plan_test

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// dice makes choices from bytes, so that the same invariants can be checked with random
// and with fuzzed bytes. It returns 0 after the last byte.
type dice struct{ bytes []byte }

func (d *dice) n(sides int) int {
	if len(d.bytes) == 0 {
		return 0
	}
	b := d.bytes[0]
	d.bytes = d.bytes[1:]
	return int(b) % sides
}

func pick[T any](d *dice, of ...T) T { return of[d.n(len(of))] }

// randomPod returns a model with a pod and nothing in the runtime.
func randomPod(t testing.TB, d *dice) *model {
	s := newModel(t, "")
	spec := &s.pod.Spec
	spec.RestartPolicy = pick(d, v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever)
	container := func(name string) v1.Container {
		c := v1.Container{Name: name, Image: "nginx:1"}
		if d.n(3) == 0 {
			c.RestartPolicy = new(pick(d, v1.ContainerRestartPolicyAlways, v1.ContainerRestartPolicyOnFailure, v1.ContainerRestartPolicyNever))
			if d.n(3) == 0 {
				rule := v1.ContainerRestartRule{
					Action: v1.ContainerRestartRuleActionRestart,
					ExitCodes: &v1.ContainerRestartRuleOnExitCodes{
						Operator: pick(d, v1.ContainerRestartRuleOnExitCodesOpIn, v1.ContainerRestartRuleOnExitCodesOpNotIn),
						Values:   []int32{1},
					},
				}
				if d.n(2) == 0 {
					// Only operator In: a pod that restarts after each success never settles.
					rule.Action, rule.ExitCodes.Operator = v1.ContainerRestartRuleActionRestartAllContainers, v1.ContainerRestartRuleOnExitCodesOpIn
				}
				c.RestartPolicyRules = append(c.RestartPolicyRules, rule)
			}
		}
		for _, p := range []**v1.Probe{&c.LivenessProbe, &c.StartupProbe} {
			if d.n(3) == 0 {
				*p = &v1.Probe{TerminationGracePeriodSeconds: pick(d, nil, new(int64(3)))}
			}
		}
		if r := randomResources(d); r != nil {
			c.Resources = *r
		}
		if d.n(4) == 0 {
			c.ResizePolicy = []v1.ContainerResizePolicy{{
				ResourceName:  pick(d, v1.ResourceCPU, v1.ResourceMemory),
				RestartPolicy: pick(d, v1.RestartContainer, v1.NotRequired),
			}}
		}
		return c
	}
	for _, name := range []string{"i0", "i1", "i2"}[:d.n(4)] {
		spec.InitContainers = append(spec.InitContainers, container(name))
	}
	for _, name := range []string{"c0", "c1"}[:1+d.n(2)] {
		spec.Containers = append(spec.Containers, container(name))
	}
	for _, name := range []string{"e0"}[:d.n(2)] {
		spec.EphemeralContainers = append(spec.EphemeralContainers, v1.EphemeralContainer{
			EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: name, Image: "nginx:1"},
		})
	}
	return s
}

// randomResources returns random resources, or nil if they are unknown.
func randomResources(d *dice) *v1.ResourceRequirements {
	if d.n(2) == 0 {
		return nil
	}
	r := &v1.ResourceRequirements{Requests: v1.ResourceList{}, Limits: v1.ResourceList{}}
	for _, list := range []v1.ResourceList{r.Requests, r.Limits} {
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			if amount := pick(d, "", "0", "1m", "2m", "1", "2"); amount != "" {
				list[name] = resource.MustParse(amount)
			}
		}
	}
	return r
}

// randomProbes sets random results for the existing instances, or nil, as without a
// prober.
func (s *model) randomProbes(d *dice) {
	s.probes = nil
	if d.n(4) == 0 {
		return
	}
	for _, inst := range s.status.Containers {
		for _, results := range []map[string]runtime.ProbeResult{s.probed().Liveness, s.probed().Startup} {
			switch pick(d, runtime.ProbeSuccess, runtime.ProbeUnknown, runtime.ProbeSuccess, runtime.ProbeFailure) {
			case runtime.ProbeSuccess:
				results[inst.ID] = runtime.ProbeSuccess
			case runtime.ProbeFailure:
				results[inst.ID] = runtime.ProbeFailure
			}
		}
	}
}

// randomModel returns a pod and a random state of the runtime, consistent or
// not.
func randomModel(t testing.TB, d *dice) *model {
	s := randomPod(t, d)
	if d.n(8) == 0 {
		s.pod.DeletionTimestamp = new(metav1.NewTime(epoch))
	}
	ids := []string{"gone"}
	for i, id := range []string{"s0", "s1", "s2"}[:d.n(4)] {
		ids = append(ids, id, id)
		sb := runtime.SandboxStatus{ID: id, Attempt: uint32(i), NetworkReported: d.n(2) == 0}
		// The newest sandbox is ready in most cases, so that the other branches are covered.
		sb.State = pick(d, runtime.SandboxReady, runtime.SandboxReady, runtime.SandboxNotReady, runtime.SandboxUnknown)
		sb.HostNetwork = d.n(8) == 1
		if d.n(8) != 1 {
			sb.IPs = []string{"10.0.0.1"}
		}
		s.status.Sandboxes = slices.Insert(s.status.Sandboxes, 0, sb)
	}
	for _, name := range s.names() {
		for i := range d.n(4) {
			inst := runtime.ContainerStatus{
				ID: name + string(rune('a'+i)), Name: name, SandboxID: pick(d, ids...),
				State:        pick(d, runtime.ContainerRunning, runtime.ContainerExited, runtime.ContainerExited, runtime.ContainerCreated, runtime.ContainerUnknown),
				RestartCount: int32(pick(d, i, i, i, d.n(9))),
				Hash:         pick(d, plan.Hash(s.spec(name)), plan.Hash(s.spec(name)), 0, 77),
				CreatedAt:    epoch,
				Resources:    randomResources(d),
			}
			if inst.State == runtime.ContainerExited {
				inst.ExitCode = int32(d.n(3))
				inst.FinishedAt = epoch.Add(time.Duration(d.n(200)) * time.Second)
				inst.Reason = pick(d, "", "", "OOMKilled")
			}
			s.status.Containers = append(s.status.Containers, inst)
		}
	}
	// If the clock was set, a runtime may list them in any order.
	for i := range s.status.Containers {
		j := d.n(i + 1)
		s.status.Containers[i], s.status.Containers[j] = s.status.Containers[j], s.status.Containers[i]
	}
	s.now = epoch.Add(time.Duration(d.n(200)) * time.Second)
	s.randomProbes(d)
	for _, name := range s.names() {
		if d.n(8) == 1 {
			s.record(name, int32(d.n(9)))
		}
	}
	s.ignore = d.n(8) == 1
	if d.n(4) == 1 {
		s.restore = "/checkpoint"
	}
	return s
}

// sort sorts the instances in a possible order: those of newer sandboxes
// first.
func (s *model) sort() {
	age := func(inst runtime.ContainerStatus) int {
		i := slices.IndexFunc(s.status.Sandboxes, func(sb runtime.SandboxStatus) bool { return sb.ID == inst.SandboxID })
		if i < 0 {
			return len(s.status.Sandboxes)
		}
		return i
	}
	slices.SortStableFunc(s.status.Containers, func(a, b runtime.ContainerStatus) int { return age(a) - age(b) })
}

func (s *model) names() []string {
	var names []string
	for _, c := range s.pod.Spec.InitContainers {
		names = append(names, c.Name)
	}
	for _, c := range s.pod.Spec.Containers {
		names = append(names, c.Name)
	}
	for _, c := range s.pod.Spec.EphemeralContainers {
		names = append(names, c.Name)
	}
	return names
}
