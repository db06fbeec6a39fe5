package podconfig

import (
	"encoding/json"
	"maps"
	"strconv"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// The labels and annotations that the kubelet sets on CRI objects. With them, this
// package's containers can be adopted by a kubelet and the reverse (rule rt-15).
const (
	LabelPodName       = "io.kubernetes.pod.name"
	LabelPodNamespace  = "io.kubernetes.pod.namespace"
	LabelPodUID        = "io.kubernetes.pod.uid"
	LabelContainerName = "io.kubernetes.container.name"

	AnnotationHash             = "io.kubernetes.container.hash"
	AnnotationRestartCount     = "io.kubernetes.container.restartCount"
	AnnotationMessagePath      = "io.kubernetes.container.terminationMessagePath"
	AnnotationMessagePolicy    = "io.kubernetes.container.terminationMessagePolicy"
	AnnotationDeletionGrace    = "io.kubernetes.pod.deletionGracePeriod"
	AnnotationTerminationGrace = "io.kubernetes.pod.terminationGracePeriod"
	AnnotationPreStop          = "io.kubernetes.container.preStopHandler"
	AnnotationPorts            = "io.kubernetes.container.ports"
)

// sandboxLabels returns the pod's labels and its identity, which takes precedence.
func sandboxLabels(pod *v1.Pod) map[string]string {
	labels := make(map[string]string, len(pod.Labels)+3)
	maps.Copy(labels, pod.Labels)
	labels[LabelPodName] = pod.Name
	labels[LabelPodNamespace] = pod.Namespace
	labels[LabelPodUID] = string(pod.UID)
	return labels
}

func containerLabels(pod *v1.Pod, c *v1.Container) map[string]string {
	return map[string]string{
		LabelPodName:       pod.Name,
		LabelPodNamespace:  pod.Namespace,
		LabelPodUID:        string(pod.UID),
		LabelContainerName: c.Name,
	}
}

// containerAnnotations returns the annotations with which the container can be inspected
// and stopped after its spec is gone. They take precedence over allocated ones.
func containerAnnotations(pod *v1.Pod, inst ContainerInput) map[string]string {
	c := inst.Container
	a := make(map[string]string, len(inst.Allocated.Annotations)+8)
	maps.Copy(a, inst.Allocated.Annotations)
	a[AnnotationHash] = strconv.FormatUint(plan.Hash(c), 16)
	a[AnnotationRestartCount] = strconv.Itoa(int(inst.RestartCount))
	a[AnnotationMessagePath] = c.TerminationMessagePath
	a[AnnotationMessagePolicy] = string(c.TerminationMessagePolicy)
	if g := pod.DeletionGracePeriodSeconds; g != nil {
		a[AnnotationDeletionGrace] = strconv.FormatInt(*g, 10)
	}
	if g := pod.Spec.TerminationGracePeriodSeconds; g != nil {
		a[AnnotationTerminationGrace] = strconv.FormatInt(*g, 10)
	}
	if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
		putJSON(a, AnnotationPreStop, c.Lifecycle.PreStop)
	}
	if len(c.Ports) > 0 {
		putJSON(a, AnnotationPorts, c.Ports)
	}
	return a
}

// putJSON sets an annotation to value as JSON. API types can always be marshaled.
func putJSON(a map[string]string, key string, value any) {
	if text, err := json.Marshal(value); err == nil {
		a[key] = string(text)
	}
}

// The functions below return zero for missing and invalid annotations (rule rt-14).

// HashOf returns the hash of the spec that a container was created from.
func HashOf(a map[string]string) uint64 {
	h, _ := strconv.ParseUint(a[AnnotationHash], 16, 64)
	return h
}

// RestartCountOf returns the number of restarts before this instance.
func RestartCountOf(a map[string]string) int32 {
	n, _ := strconv.ParseInt(a[AnnotationRestartCount], 10, 32)
	return int32(max(n, 0))
}

// SecondsOf returns the grace period of the annotation key in seconds, nil if it is not
// set; key is [AnnotationDeletionGrace] or [AnnotationTerminationGrace].
func SecondsOf(a map[string]string, key string) *int64 {
	n, err := strconv.ParseInt(a[key], 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// PreStopOf returns the container's preStop hook, or nil.
func PreStopOf(a map[string]string) *v1.LifecycleHandler {
	var h v1.LifecycleHandler
	if json.Unmarshal([]byte(a[AnnotationPreStop]), &h) != nil {
		return nil
	}
	return &h
}

// PortsOf returns the ports of the container, to which its hooks may refer by name.
func PortsOf(a map[string]string) []v1.ContainerPort {
	var ports []v1.ContainerPort
	_ = json.Unmarshal([]byte(a[AnnotationPorts]), &ports)
	return ports
}
