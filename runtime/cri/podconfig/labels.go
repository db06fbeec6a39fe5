package podconfig

import (
	"encoding/json"
	"maps"
	"strconv"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// The labels and annotations that the kubelet writes on CRI objects (section
// 4.2). They are a compatibility surface: a container that a kubelet made is
// taken over by what it says there, and the other way round (rt-15).
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

// sandboxLabels are the pod's labels and, winning over them, its identity.
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

// containerAnnotations are what is needed to judge and to stop the container
// when its spec is gone. They win over what who manages devices has to say.
func containerAnnotations(pod *v1.Pod, inst Instance) map[string]string {
	c := inst.Container
	a := make(map[string]string, len(inst.Annotations)+8)
	maps.Copy(a, inst.Annotations)
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

// putJSON leaves out what cannot be written as JSON, which API types always can.
func putJSON(a map[string]string, key string, value any) {
	if text, err := json.Marshal(value); err == nil {
		a[key] = string(text)
	}
}

// The readers below take what is missing or broken for zero, and never fail
// (rt-14).

// HashOf returns the hash of the definition that a container was made from.
func HashOf(a map[string]string) uint64 {
	h, _ := strconv.ParseUint(a[AnnotationHash], 16, 64)
	return h
}

// RestartCountOf returns how often the container was restarted before.
func RestartCountOf(a map[string]string) int32 {
	n, _ := strconv.ParseInt(a[AnnotationRestartCount], 10, 32)
	return int32(max(n, 0))
}

// SecondsOf returns the seconds of a grace period: [AnnotationDeletionGrace] or
// [AnnotationTerminationGrace].
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

// PortsOf returns the ports of the container, whose names a hook may use.
func PortsOf(a map[string]string) []v1.ContainerPort {
	var ports []v1.ContainerPort
	_ = json.Unmarshal([]byte(a[AnnotationPorts]), &ports)
	return ports
}
