package admission_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/allocation/admission"
	"github.com/kubeparts/kubeparts/runtime"
)

// A pod asks for "cpu 100m", "memory 1Gi"… in pairs; with limits it is
// guaranteed.
func pod(uid string, guaranteed bool, resources ...string) *v1.Pod {
	p := new(v1.Pod)
	p.UID, p.Name, p.Namespace = types.UID(uid), uid, "default"
	list := v1.ResourceList{}
	for i := 0; i+1 < len(resources); i += 2 {
		list[v1.ResourceName(resources[i])] = resource.MustParse(resources[i+1])
	}
	c := v1.Container{Name: "c", Resources: v1.ResourceRequirements{Requests: list}}
	if guaranteed {
		c.Resources.Limits = list
	}
	p.Spec.Containers = []v1.Container{c}
	return p
}

func with(p *v1.Pod, change func(*v1.Pod)) *v1.Pod {
	change(p)
	return p
}

func port(n int32, ip string, protocol v1.Protocol) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: n, HostIP: ip, Protocol: protocol}}
	}
}

func TestCheckReturnsWhyAPodIsRejected(t *testing.T) {
	node := admission.Node{
		Name: "kitchen", OS: "linux", Labels: map[string]string{"zone": "a", v1.LabelOSStable: "linux"},
		Allocatable: v1.ResourceList{
			v1.ResourceCPU: resource.MustParse("2"), v1.ResourceMemory: resource.MustParse("1Gi"), v1.ResourcePods: resource.MustParse("3"),
			"example.com/gpu": resource.MustParse("1"),
		},
		Taints: []v1.Taint{{Key: "dark", Value: "yes", Effect: v1.TaintEffectNoExecute}, {Key: "busy", Effect: v1.TaintEffectNoSchedule}},
	}
	bright := func(p *v1.Pod) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{Key: "dark", Operator: v1.TolerationOpExists})
	}
	small := with(pod("small", false, "cpu", "1500m", "memory", "100Mi"), port(80, "10.0.0.1", ""))
	affinity := func(operator v1.NodeSelectorOperator, values ...string) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
				NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: operator, Values: values}}}},
			}}}
		}
	}
	outOfCPU := "OutOfcpu: Node didn't have enough resource: cpu, requested: 600, used: 1500, capacity: 2000"
	for name, tc := range map[string]struct {
		change func(*v1.Pod)
		want   []string
	}{
		"a pod that fits": {func(*v1.Pod) {}, nil},
		"adm-7 not enough of a resource": {func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("600m")}
		}, []string{outOfCPU}},
		"adm-7 its overhead counts": {func(p *v1.Pod) {
			p.Spec.Overhead = v1.ResourceList{v1.ResourceCPU: resource.MustParse("600m")}
		}, []string{outOfCPU}},
		"adm-4 an extended resource that the node does not know is not its to give": {func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests = v1.ResourceList{"example.com/tpu": resource.MustParse("5")}
		}, nil},
		"adm-7 one of the node is": {func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests = v1.ResourceList{"example.com/gpu": resource.MustParse("2")}
		}, []string{"OutOfexample.com/gpu: Node didn't have enough resource: example.com/gpu, requested: 2, used: 0, capacity: 1"}},
		"a resource of Kubernetes' own that the node has none of": {func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests = v1.ResourceList{"hugepages-2Mi": resource.MustParse("2Mi")}
		}, []string{"OutOfhugepages-2Mi: Node didn't have enough resource: hugepages-2Mi, requested: 2097152, used: 0, capacity: 0"}},
		"adm-3 the system, by its label": {func(p *v1.Pod) { p.Labels = map[string]string{v1.LabelOSStable: "windows"} }, []string{
			"PodOSSelectorNodeLabelDoesNotMatch: Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"}},
		"adm-3 the system, by its selector": {func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{v1.LabelOSStable: "windows"} }, []string{
			"NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"}},
		"adm-3 and by its own word": {func(p *v1.Pod) { p.Spec.OS = &v1.PodOS{Name: v1.Windows} }, []string{
			"PodOSNotSupported: Failed to admit pod as the OS field doesn't match node OS"}},
		"adm-5, adm-8 another node's name": {func(p *v1.Pod) { p.Spec.NodeName = "cellar" }, []string{
			`NodeName: Predicate NodeName failed: node(s) didn't match the requested node name: the pod is bound to node "cellar", this is "kitchen"`}},
		"its own node's name":     {func(p *v1.Pod) { p.Spec.NodeName = "kitchen" }, nil},
		"an affinity that fits":   {affinity(v1.NodeSelectorOpIn, "a", "b"), nil},
		"adm-5 one that does not": {affinity(v1.NodeSelectorOpNotIn, "a"), []string{"NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"}},
		"adm-5 a host port that is in use, at all addresses": {port(80, "", ""), []string{
			"NodePorts: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports: host port 80 is in use by pod default/small"}},
		"the port of another address":  {port(80, "10.0.0.2", ""), nil},
		"the port of another protocol": {port(80, "", v1.ProtocolUDP), nil},
		"a sidecar's port": {func(p *v1.Pod) {
			p.Spec.InitContainers = []v1.Container{{RestartPolicy: new(v1.ContainerRestartPolicyAlways), Ports: []v1.ContainerPort{{HostPort: 80}}}}
		}, []string{"NodePorts: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports: host port 80 is in use by pod default/small"}},
		"an init container's port is free again when the pod serves": {func(p *v1.Pod) {
			p.Spec.InitContainers = []v1.Container{{Ports: []v1.ContainerPort{{HostPort: 80}}}}
		}, nil},
		"adm-5 a taint that drives it away": {func(p *v1.Pod) { p.Spec.Tolerations = nil }, []string{
			"TaintToleration: Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate: dark=yes:NoExecute"}},
		"a static pod stays": {func(p *v1.Pod) {
			p.Spec.Tolerations, p.Annotations = nil, map[string]string{runtime.ConfigSourceAnnotation: "file"}
		}, nil},
		"a taint is tolerated by its value": {func(p *v1.Pod) {
			p.Spec.Tolerations = []v1.Toleration{{Key: "dark", Value: "yes", Effect: v1.TaintEffectNoExecute}}
		}, nil},
		"and not by another": {func(p *v1.Pod) { p.Spec.Tolerations = []v1.Toleration{{Key: "dark", Value: "no"}} }, []string{
			"TaintToleration: Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate: dark=yes:NoExecute"}},
		"all reasons are reported, in order": {func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("600m")}
			p.Spec.NodeName = "cellar"
			p.Spec.OS = &v1.PodOS{Name: v1.Windows}
		}, []string{
			"PodOSNotSupported: Failed to admit pod as the OS field doesn't match node OS", outOfCPU,
			`NodeName: Predicate NodeName failed: node(s) didn't match the requested node name: the pod is bound to node "cellar", this is "kitchen"`}},
	} {
		t.Run(name, func(t *testing.T) {
			p := with(with(pod("new", false), bright), tc.change)
			var got []string
			// It is left out itself where it was let in before.
			for _, r := range admission.Check(p, []*v1.Pod{small, p}, node) {
				got = append(got, r.Reason+": "+r.Error())
			}
			assert.Equal(t, tc.want, got)
		})
	}
	t.Run("adm-7 the number of pods", func(t *testing.T) {
		others := []*v1.Pod{small, pod("b", false), pod("c", false)}
		refusals := admission.Fit(pod("new", false), others, node)
		require.Len(t, refusals, 1)
		assert.Equal(t, "OutOfpods", refusals[0].Reason)
		assert.Equal(t, "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3", refusals[0].Message)
	})
	t.Run("an empty node takes all", func(t *testing.T) {
		assert.Empty(t, admission.Check(pod("new", false, "cpu", "99"), nil, admission.Node{}))
	})
}

func TestTaintsAreComparedAsNumbers(t *testing.T) {
	node := admission.Node{Taints: []v1.Taint{{Key: "sla", Value: "950", Effect: v1.TaintEffectNoExecute}}}
	for _, tc := range []struct {
		operator  v1.TolerationOperator
		value     string
		tolerated bool
	}{
		{v1.TolerationOpGt, "900", true},
		{v1.TolerationOpGt, "950", false},
		{v1.TolerationOpLt, "960", true},
		{v1.TolerationOpLt, "900", false},
		{v1.TolerationOpGt, "x", false},
		{v1.TolerationOpEqual, "950", true},
	} {
		p := pod("new", false)
		p.Spec.Tolerations = []v1.Toleration{{Key: "sla", Operator: tc.operator, Value: tc.value, Effect: v1.TaintEffectNoExecute}}
		assert.Equal(t, tc.tolerated, len(admission.Check(p, nil, node)) == 0, "%s %s", tc.operator, tc.value)
	}
}

func TestCheckIsADryRun(t *testing.T) {
	node := admission.Node{Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}}
	p, other := pod("a", false, "cpu", "600m"), pod("b", false, "cpu", "600m")
	before := fmt.Sprint(p, other, node)
	assert.Empty(t, admission.Check(p, nil, node))
	assert.Len(t, admission.Check(p, []*v1.Pod{other}, node), 1)
	assert.Empty(t, admission.Check(p, nil, node), "nothing was kept of what was asked")
	assert.Equal(t, before, fmt.Sprint(p, other, node))
}
