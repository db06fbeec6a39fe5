package cri

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
	labelPodName       = "io.kubernetes.pod.name"
	labelPodNamespace  = "io.kubernetes.pod.namespace"
	labelPodUID        = "io.kubernetes.pod.uid"
	labelContainerName = "io.kubernetes.container.name"

	annotationHash               = "io.kubernetes.container.hash"
	annotationRestartCount       = "io.kubernetes.container.restartCount"
	annotationMessagePath        = "io.kubernetes.container.terminationMessagePath"
	annotationMessagePolicy      = "io.kubernetes.container.terminationMessagePolicy"
	annotationDeletionGrace      = "io.kubernetes.pod.deletionGracePeriod"
	annotationTerminationGrace   = "io.kubernetes.pod.terminationGracePeriod"
	annotationPreStop            = "io.kubernetes.container.preStopHandler"
	annotationContainerPortsJSON = "io.kubernetes.container.ports"
)

// sandboxLabels are the pod's labels and, winning over them, its identity.
func sandboxLabels(pod *v1.Pod) map[string]string {
	labels := make(map[string]string, len(pod.Labels)+3)
	maps.Copy(labels, pod.Labels)
	labels[labelPodName] = pod.Name
	labels[labelPodNamespace] = pod.Namespace
	labels[labelPodUID] = string(pod.UID)
	return labels
}

func containerLabels(pod *v1.Pod, c *v1.Container) map[string]string {
	return map[string]string{
		labelPodName:       pod.Name,
		labelPodNamespace:  pod.Namespace,
		labelPodUID:        string(pod.UID),
		labelContainerName: c.Name,
	}
}

// containerAnnotations are what is needed to judge and to stop the container
// when its spec is gone.
func containerAnnotations(pod *v1.Pod, c *v1.Container, restartCount int32) map[string]string {
	a := map[string]string{
		annotationHash:          strconv.FormatUint(plan.Hash(c), 16),
		annotationRestartCount:  strconv.Itoa(int(restartCount)),
		annotationMessagePath:   c.TerminationMessagePath,
		annotationMessagePolicy: string(c.TerminationMessagePolicy),
	}
	if g := pod.DeletionGracePeriodSeconds; g != nil {
		a[annotationDeletionGrace] = strconv.FormatInt(*g, 10)
	}
	if g := pod.Spec.TerminationGracePeriodSeconds; g != nil {
		a[annotationTerminationGrace] = strconv.FormatInt(*g, 10)
	}
	if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
		putJSON(a, annotationPreStop, c.Lifecycle.PreStop)
	}
	if len(c.Ports) > 0 {
		putJSON(a, annotationContainerPortsJSON, c.Ports)
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

func hashOf(a map[string]string) uint64 {
	h, _ := strconv.ParseUint(a[annotationHash], 16, 64)
	return h
}

func restartCountOf(a map[string]string) int32 {
	n, _ := strconv.ParseInt(a[annotationRestartCount], 10, 32)
	return int32(max(n, 0))
}

func secondsOf(a map[string]string, key string) *int64 {
	n, err := strconv.ParseInt(a[key], 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

func preStopOf(a map[string]string) *v1.LifecycleHandler {
	var h v1.LifecycleHandler
	if json.Unmarshal([]byte(a[annotationPreStop]), &h) != nil {
		return nil
	}
	return &h
}

func portsOf(a map[string]string) []v1.ContainerPort {
	var ports []v1.ContainerPort
	_ = json.Unmarshal([]byte(a[annotationContainerPortsJSON]), &ports)
	return ports
}
