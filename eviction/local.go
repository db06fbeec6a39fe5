package eviction

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	podresource "k8s.io/component-helpers/resource"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// What metrics call an eviction for a limit of the pod's own (ev-50).
const (
	SignalEmptyDirLimit  = "emptydirfs.limit"
	SignalPodLimit       = "ephemeralpodfs.limit"
	SignalContainerLimit = "ephemeralcontainerfs.limit"
)

// overLimits returns the pods that use more local storage than they may. Each
// goes for the first reason that there is (ev-46).
func (in *Inputs) overLimits() (evictions []Eviction) {
	var stats map[string]*statsapi.PodStats
	for _, pod := range in.Pods {
		if pod == nil || !limited(pod) {
			continue
		}
		if stats == nil {
			stats = map[string]*statsapi.PodStats{}
			if in.Summary != nil {
				for i := range in.Summary.Pods {
					stats[in.Summary.Pods[i].PodRef.UID] = &in.Summary.Pods[i]
				}
			}
		}
		signal, message := overLimit(pod, stats[string(pod.UID)], in.Layout)
		if signal == "" {
			continue
		}
		e := Eviction{Pod: pod, Signal: signal, Message: message, GracePeriodSeconds: immediateGrace}
		switch {
		case in.Policy.critical(pod):
			e.Refused = "it is critical"
		case in.held(pod):
			e.Refused = heldText
		}
		evictions = append(evictions, e)
	}
	return evictions
}

// limited reports whether a pod has any limit of local storage: most have none,
// and need not be looked at further.
func limited(pod *v1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if e := pod.Spec.Volumes[i].EmptyDir; e != nil && e.SizeLimit != nil {
			return true
		}
	}
	for c := range podspec.Containers(pod) {
		if _, ok := c.Resources.Limits[v1.ResourceEphemeralStorage]; ok {
			return true
		}
	}
	return false
}

func overLimit(pod *v1.Pod, stats *statsapi.PodStats, layout Layout) (signal, message string) {
	if stats == nil {
		return "", ""
	}
	if message := emptyDirOver(pod, stats); message != "" {
		return SignalEmptyDirLimit, message
	}
	if message := podOver(pod, stats); message != "" {
		return SignalPodLimit, message
	}
	if message := containerOver(pod, stats, layout); message != "" {
		return SignalContainerLimit, message
	}
	return "", ""
}

// emptyDirOver: volumes of any medium count (ev-47).
func emptyDirOver(pod *v1.Pod, stats *statsapi.PodStats) string {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.EmptyDir == nil || v.EmptyDir.SizeLimit == nil || v.EmptyDir.SizeLimit.Sign() <= 0 {
			continue
		}
		for j := range stats.VolumeStats {
			if s := &stats.VolumeStats[j]; s.Name == v.Name && over(figureOf(s.UsedBytes), *v.EmptyDir.SizeLimit) {
				return fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, v.EmptyDir.SizeLimit.String())
			}
		}
	}
	return ""
}

// podOver holds all that the pod has on disk against the sum of its containers'
// limits (ev-48).
func podOver(pod *v1.Pod, stats *statsapi.PodStats) string {
	limit, ok := podresource.PodLimits(pod, podresource.PodResourcesOptions{})[v1.ResourceEphemeralStorage]
	if !ok || stats.EphemeralStorage == nil || !over(figureOf(stats.EphemeralStorage.UsedBytes), limit) {
		return ""
	}
	return fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", limit.String())
}

// containerOver holds each container's logs, and its writable layer where that is
// on the node's file system, against its limit (ev-49).
func containerOver(pod *v1.Pod, stats *statsapi.PodStats, layout Layout) string {
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		limit, ok := c.Resources.Limits[v1.ResourceEphemeralStorage]
		if !ok || limit.Sign() == 0 {
			continue
		}
		for j := range stats.Containers {
			s := &stats.Containers[j]
			if s.Name != c.Name {
				continue
			}
			used := int64(0)
			if s.Logs != nil {
				used = figureOf(s.Logs.UsedBytes)
			}
			if s.Rootfs != nil && layout == SingleFS {
				used = add(used, figureOf(s.Rootfs.UsedBytes))
			}
			if over(used, limit) {
				return fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", c.Name, limit.String())
			}
		}
	}
	return ""
}

func over(used int64, limit resource.Quantity) bool { return limit.CmpInt64(used) < 0 }
