package admission

import (
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kubeparts/kubeparts/internal/restart"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Node is what is known of the node.
type Node struct {
	// Name is held against spec.nodeName.
	Name string

	// OS is the operating system of its pods, as GOOS has it. Empty: not
	// checked.
	OS string

	// Labels are held against node selectors and affinities.
	Labels map[string]string

	// Allocatable is what pods can have in all. Nil: resources are not
	// checked. A resource that a node of any kind has (cpu, memory,
	// ephemeral-storage, hugepages-*) and that is not in it, it has none of;
	// an extended one is not the node's to give out, and ignored (adm-4). The
	// number of pods is limited by "pods" if that is in it.
	Allocatable v1.ResourceList

	// Taints of effect NoExecute are held against tolerations.
	Taints []v1.Taint

	// ResourceClaims reports that the node supports dynamic resource allocation.
	// If false, pods with resource claims are rejected.
	ResourceClaims bool
}

// A Failure is one reason why a pod may not run on a node.
type Failure struct {
	runtime.Rejection

	// Lack is the missing resource; nil if the reason is another one.
	Lack *Lack
}

// Check returns every reason why pod may not run on the node together with others,
// which are the pods that were admitted and have not terminated. The order is that
// of the kubelet, which reports the first (adm-9). If there is none the pod may run.
// Others may contain the pod itself.
func Check(pod *v1.Pod, others []*v1.Pod, node Node) []Failure {
	failures := append(checkSpec(pod, node), checkOS(pod, node)...)
	failures = append(failures, Fit(pod, others, node)...)
	if pod.Spec.NodeName != "" && node.Name != "" && pod.Spec.NodeName != node.Name {
		failures = append(failures, predicate("NodeName", "the pod is bound to node %q, this is %q", pod.Spec.NodeName, node.Name))
	}
	failures = append(failures, checkAffinity(pod, node)...)
	if port, holder := conflict(pod, others); holder != nil {
		failures = append(failures, predicate("NodePorts", "host port %d is in use by pod %s/%s", port.HostPort, holder.Namespace, holder.Name))
	}
	return append(failures, checkTaints(pod, node)...)
}

// predicate returns a failure in the format of adm-8.
func predicate(name, format string, args ...any) Failure {
	return failure(name, "Predicate %s failed: %s", name, fmt.Sprintf(format, args...))
}

func failure(reason, format string, args ...any) Failure {
	return Failure{Rejection: runtime.Rejection{Reason: reason, Message: fmt.Sprintf(format, args...)}}
}

// checkOS holds the pod against the node's operating system, by its selector and
// by its own word (adm-3).
// unexpectedError is the reason of a rejection for which Kubernetes has no other.
const unexpectedError = "UnexpectedAdmissionError"

// checkSpec rejects pods that cannot run on such a node. An API server rejects pods
// without containers; a static pod may have none. Such a pod would terminate as soon as
// its sandbox is created, which would be created and removed in a loop.
func checkSpec(pod *v1.Pod, node Node) (failures []Failure) {
	if len(pod.Spec.Containers) == 0 {
		failures = append(failures, failure("NoContainers", "Pod has no containers: there is nothing to run"))
	}
	if len(pod.Spec.ResourceClaims) > 0 && !node.ResourceClaims {
		failures = append(failures, failure(unexpectedError, "resource claims (dynamic resource allocation) are not supported"))
	}
	return failures
}

func checkOS(pod *v1.Pod, node Node) (failures []Failure) {
	if node.OS == "" {
		return nil
	}
	if want, ok := pod.Spec.NodeSelector[v1.LabelOSStable]; ok && want != node.OS {
		failures = append(failures, failure("PodOSSelectorNodeLabelDoesNotMatch",
			"the pod selects nodes with %s %q, this one runs %q", v1.LabelOSStable, want, node.OS))
	}
	if pod.Spec.OS != nil && string(pod.Spec.OS.Name) != node.OS {
		failures = append(failures, failure("PodOSNotSupported", "the pod is for %q, this node runs %q", pod.Spec.OS.Name, node.OS))
	}
	return failures
}

func checkAffinity(pod *v1.Pod, node Node) []Failure {
	object := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels}}
	switch ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(object); {
	case err != nil:
		return []Failure{predicate("NodeAffinity", "the pod's node affinity cannot be parsed: %v", err)}
	case !ok:
		return []Failure{predicate("NodeAffinity", "the node's labels do not match the pod's node selector or affinity")}
	}
	return nil
}

// checkTaints holds the pod against the taints that would drive it away. Static
// pods stay whatever they tolerate (adm-5).
func checkTaints(pod *v1.Pod, node Node) []Failure {
	if runtime.IsStatic(pod) {
		return nil
	}
	for _, taint := range node.Taints {
		if taint.Effect == v1.TaintEffectNoExecute && !tolerated(pod.Spec.Tolerations, taint) {
			return []Failure{predicate("TaintToleration", "the pod does not tolerate taint %s", taint.ToString())}
		}
	}
	return nil
}

// tolerated includes the operators Lt and Gt: only an API server that supports them
// admits a pod that has them.
func tolerated(tolerations []v1.Toleration, taint v1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(t v1.Toleration) bool {
		return t.ToleratesTaint(logr.Discard(), &taint, true)
	})
}

// conflict returns a host port that pod wants and another one has; no holder:
// there is none. Ports conflict on one protocol, at addresses of which one is
// the other, or stands for all.
func conflict(pod *v1.Pod, others []*v1.Pod) (port v1.ContainerPort, holder *v1.Pod) {
	wanted := hostPorts(pod)
	if len(wanted) == 0 {
		return port, nil
	}
	for _, other := range others {
		if other.UID == pod.UID {
			continue
		}
		for _, has := range hostPorts(other) {
			for _, want := range wanted {
				if want.HostPort == has.HostPort && protocol(want) == protocol(has) && sameAddress(want.HostIP, has.HostIP) {
					return want, other
				}
			}
		}
	}
	return port, nil
}

// hostPorts returns the ports that the pod holds on the node for as long as it
// runs: those of its containers and sidecars.
func hostPorts(pod *v1.Pod) (ports []v1.ContainerPort) {
	add := func(c *v1.Container) {
		for _, p := range c.Ports {
			if p.HostPort > 0 {
				ports = append(ports, p)
			}
		}
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i])
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; restart.Sidecar(c) {
			add(c)
		}
	}
	return ports
}

func protocol(p v1.ContainerPort) v1.Protocol {
	if p.Protocol == "" {
		return v1.ProtocolTCP
	}
	return p.Protocol
}

func sameAddress(a, b string) bool {
	all := func(ip string) bool { return ip == "" || ip == "0.0.0.0" || ip == "::" }
	return all(a) || all(b) || a == b
}
