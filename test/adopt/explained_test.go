//go:build linux

package adopt

import (
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// An explanation is the reason for a difference of statuses that is no fault. The first
// five also occur when a kubelet of 1.37.2 is restarted.
type explanation struct {
	reason  string
	pattern *regexp.Regexp           // of the line
	pods    func(before v1.Pod) bool // nil: all
	kubelet bool                     // only if a kubelet takes over
}

var explanations = []explanation{
	{reason: "the states of a container that cannot start alternate, and their messages contain IDs", pattern: regexp.MustCompile(`\.state\.waiting\.`)},
	{
		reason:  "the source has no status of a static pod, and a mirror pod with another hash is replaced",
		pattern: regexp.MustCompile(`^\.(startTime|conditions\[\w+\]\.lastTransitionTime):`), pods: static,
	},
	{
		reason:  "a rejected pod has no statuses of containers until a kubelet starts that did not reject it",
		pattern: regexp.MustCompile(`^\.(allocatedResources|resources|conditions|containerStatuses|hostIPs?)\b`), pods: rejected,
	},
	{reason: "the sandbox of a terminated pod has no address any more", pattern: regexp.MustCompile(`^\.podIPs?\b.*: "", was "`), pods: terminatedPod},
	{reason: "a kubelet does not report a static pod's volume mounts again", pattern: regexp.MustCompile(`\.volumeMounts\[`), pods: static},
	{reason: "a kubelet has the gate ContainerStopSignals off", pattern: regexp.MustCompile(`\.stopSignal: `)},
	{reason: "a kubelet reports the largest number of cgroup v1 without a limit", pattern: regexp.MustCompile(`^\.resources\.limits\.memory: .*"9007199254740988Ki"`)},
	{
		reason:  "resources of pods: a kubelet reads them from the cgroup, and omits the smallest shares and extended resources",
		pattern: regexp.MustCompile(`^\.(resources|allocatedResources)\.`),
	},
	{
		reason:  "a kubelet that starts may report a pod as ready, or as not ready, until its first probe",
		pattern: regexp.MustCompile(`^\.conditions\[(Ready|ContainersReady)\]\.lastTransitionTime: `), pods: probed, kubelet: true,
	},
	{reason: "limits that a container has from its pod", pattern: regexp.MustCompile(`\.resources\.(limits|requests)\.`), pods: func(pod v1.Pod) bool { return pod.Spec.Resources != nil }},
	{reason: "a kubelet of 1.37 omits the generation of this condition, and earlier ones the condition", pattern: regexp.MustCompile(`^\.conditions\[AllContainersRestarting\]\.`)},
	{reason: "kubelets of 1.34 and 1.35 do not report why a sandbox is not ready", pattern: regexp.MustCompile(`^\.conditions\[PodReadyToStartContainers\]\.(reason|message): `)},
}

func static(pod v1.Pod) bool {
	_, is := pod.Annotations[v1.MirrorPodAnnotationKey]
	return is
}

func terminatedPod(pod v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// probed reports whether a container of the pod has a readiness or startup probe.
func probed(pod v1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c v1.Container) bool {
		return c.ReadinessProbe != nil || c.StartupProbe != nil
	})
}

// rejected reports whether the node has not admitted the pod.
func rejected(pod v1.Pod) bool {
	return pod.Status.Phase == v1.PodFailed && pod.Status.Reason != "" && !strings.HasPrefix(pod.Status.Reason, "Deadline")
}

// unexplained returns the differences from before without an explanation, after next took over.
func unexplained(next program, before v1.Pod, lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool {
		return slices.ContainsFunc(explanations, func(e explanation) bool {
			return e.pattern.MatchString(line) && (e.pods == nil || e.pods(before)) && (!e.kubelet || next.name != "kubeparts")
		})
	})
}
