package scheduler_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

type (
	editNode = func(*v1.Node)
	editPod  = func(*v1.Pod)
)

// newNode returns a node with 8 CPUs, 32Gi and 110 pods.
func newNode(name string, edits ...editNode) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}}}
	n.Status.Allocatable = v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("8"), v1.ResourceMemory: resource.MustParse("32Gi"), v1.ResourcePods: resource.MustParse("110"),
	}
	for _, edit := range edits {
		edit(n)
	}
	return n
}

func zone(name string) editNode { return nodeLabel(v1.LabelTopologyZone, name) }
func cordoned(n *v1.Node)       { n.Spec.Unschedulable = true }
func has(name, q string) editNode {
	return func(n *v1.Node) { n.Status.Allocatable[v1.ResourceName(name)] = resource.MustParse(q) }
}

func nodeLabel(key, value string) editNode { return func(n *v1.Node) { n.Labels[key] = value } }

func taint(effect v1.TaintEffect) editNode {
	return func(n *v1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: "only", Value: "gpu", Effect: effect})
	}
}

// newPod returns a pod without requests whose label app is the part of its name before the
// dash.
func newPod(name string, edits ...editPod) *v1.Pod {
	app := name
	for i := range name {
		if name[i] == '-' {
			app = name[:i]
		}
	}
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{"app": app}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main"}}},
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func requests(pairs ...string) editPod {
	return func(p *v1.Pod) {
		list := v1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			list[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		p.Spec.Containers[0].Resources.Requests = list
	}
}

func hostPort(ip string, port int32) editPod {
	return func(p *v1.Pod) { p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostIP: ip, HostPort: port}} }
}

func tolerates(p *v1.Pod) {
	p.Spec.Tolerations = []v1.Toleration{{Key: "only", Operator: v1.TolerationOpExists}}
}

func namespace(name string) editPod { return func(p *v1.Pod) { p.Namespace = name } }
func terminating(p *v1.Pod)         { p.DeletionTimestamp = new(metav1.Now()) }
func selects(key, value string) editPod {
	return func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
}

// affine adds a pod affinity term, or an anti-affinity term, for pods of an app; preferred
// with a weight, required without one.
func affine(anti bool, app, key string, weight int32, edits ...func(*v1.PodAffinityTerm)) editPod {
	return func(p *v1.Pod) {
		t := v1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
		for _, edit := range edits {
			edit(&t)
		}
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{}, PodAntiAffinity: &v1.PodAntiAffinity{}}
		}
		weighted := v1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: t}
		switch a := p.Spec.Affinity; {
		case anti && weight == 0:
			a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, t)
		case anti:
			a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, weighted)
		case weight == 0:
			a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, t)
		default:
			a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, weighted)
		}
	}
}

// spreads adds a topology spread constraint for the pods of its app.
func spreads(key string, skew int32, when v1.UnsatisfiableConstraintAction, edits ...func(*v1.TopologySpreadConstraint)) editPod {
	return func(p *v1.Pod) {
		c := v1.TopologySpreadConstraint{
			TopologyKey: key, MaxSkew: skew, WhenUnsatisfiable: when,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.Labels["app"]}},
		}
		for _, edit := range edits {
			edit(&c)
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
}

// on is a pod on a node.
type on struct {
	node string
	pod  *v1.Pod
}

func replicas(app string, n int, edits ...editPod) (pods []*v1.Pod) {
	for i := range n {
		pods = append(pods, newPod(fmt.Sprintf("%s-%d", app, i), edits...))
	}
	return pods
}
