package admission

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Node has the properties of a node that pods are checked against.
type Node struct {
	// Name is compared with spec.nodeName. If empty, it is not checked.
	Name string

	// OS is the operating system of the node's pods (GOOS). If empty, it is not checked.
	OS string

	// Labels are matched by node selectors and affinities.
	Labels map[string]string

	// Allocatable is the total of resources for pods. If nil, resources are not checked. A
	// native resource (cpu, memory, ephemeral-storage, hugepages-*) that it lacks is not
	// available; extended resources that it lacks are allocated by other components and are
	// ignored (rule adm-4). The number of pods is limited only if it contains "pods".
	Allocatable v1.ResourceList

	// Taints of effect NoExecute must be tolerated.
	Taints []v1.Taint

	// ResourceClaims reports that the node supports dynamic resource allocation.
	// If false, pods with resource claims are rejected.
	ResourceClaims bool
}

// A Failure is one reason why a pod may not run on a node.
type Failure struct {
	runtime.Rejection

	// InsufficientResource is the missing resource. Nil if the reason is another one.
	InsufficientResource *InsufficientResource
}

// Check returns every reason why pod may not run on the node together with others,
// which are the pods that were admitted and have not terminated. The order is that
// of the kubelet, which reports the first one. The messages are the kubelet's; those
// about names, ports and taints add which one it is. Others may contain the pod itself.
func Check(pod *v1.Pod, others []*v1.Pod, node Node) []Failure {
	failures := append(checkSpec(pod, node), checkOS(pod, node)...)
	failures = append(failures, Fit(pod, others, node)...)
	if pod.Spec.NodeName != "" && node.Name != "" && pod.Spec.NodeName != node.Name {
		failures = append(failures, predicate("NodeName", "node(s) didn't match the requested node name: the pod is bound to node %q, this is %q", pod.Spec.NodeName, node.Name))
	}
	failures = append(failures, checkAffinity(pod, node)...)
	if port, user := conflict(pod, others); user != nil {
		failures = append(failures, predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports: host port %d is in use by pod %s/%s", port.HostPort, user.Namespace, user.Name))
	}
	return append(failures, checkTaints(pod, node)...)
}

// predicate returns a failure in the format of the scheduler's predicates.
func predicate(name, format string, args ...any) Failure {
	return failure(name, "Predicate %s failed: %s", name, fmt.Sprintf(format, args...))
}

func failure(reason, format string, args ...any) Failure {
	return Failure{Rejection: runtime.Rejection{Reason: reason, Message: fmt.Sprintf(format, args...)}}
}

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

// checkOS compares the pod's label and spec.os with the operating system of the node. As in the
// kubelet it reads the label of the pod; [checkAffinity] evaluates its node selector.
func checkOS(pod *v1.Pod, node Node) (failures []Failure) {
	if node.OS == "" {
		return nil
	}
	if label, ok := pod.Labels[v1.LabelOSStable]; ok && label != node.OS {
		failures = append(failures, failure("PodOSSelectorNodeLabelDoesNotMatch",
			"Failed to admit pod as the `%s` label doesn't match node label", v1.LabelOSStable))
	}
	if pod.Spec.OS != nil && string(pod.Spec.OS.Name) != node.OS {
		failures = append(failures, failure("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"))
	}
	return failures
}

func checkAffinity(pod *v1.Pod, node Node) []Failure {
	object := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels}}
	switch ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(object); {
	case err != nil:
		return []Failure{predicate("NodeAffinity", "the pod's node affinity cannot be parsed: %v", err)}
	case !ok:
		return []Failure{predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")}
	}
	return nil
}

// checkTaints checks the taints that would evict the pod. Static pods are not evicted by taints
// (rule adm-5).
func checkTaints(pod *v1.Pod, node Node) []Failure {
	if runtime.IsStatic(pod) {
		return nil
	}
	for _, taint := range node.Taints {
		if taint.Effect == v1.TaintEffectNoExecute && !podspec.Tolerates(pod, taint) {
			return []Failure{predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate: %s", taint.ToString())}
		}
	}
	return nil
}

// conflict returns a host port of pod that another pod uses; user is nil if there is none. Ports
// conflict if the protocols are equal, and the addresses are equal or one is unspecified.
func conflict(pod *v1.Pod, others []*v1.Pod) (port v1.ContainerPort, user *v1.Pod) {
	ports := hostPorts(pod)
	if len(ports) == 0 {
		return port, nil
	}
	for _, other := range others {
		if other.UID == pod.UID {
			continue
		}
		for _, used := range hostPorts(other) {
			for _, p := range ports {
				if p.HostPort == used.HostPort && protocol(p) == protocol(used) && sameAddress(p.HostIP, used.HostIP) {
					return p, other
				}
			}
		}
	}
	return port, nil
}

// hostPorts returns the host ports of the pod's containers and sidecars.
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
		if c := &pod.Spec.InitContainers[i]; podspec.IsSidecar(c) {
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
