package eviction

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	podresource "k8s.io/component-helpers/resource"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// The Signal of evictions for limits of the pod's own.
const (
	signalEmptyDirLimit  = "emptydirfs.limit"
	signalPodLimit       = "ephemeralpodfs.limit"
	signalContainerLimit = "ephemeralcontainerfs.limit"
)

// overLimits returns an eviction for each pod that exceeds a limit of its local storage,
// for the first such limit.
func (in *Inputs) overLimits() (victims []Victim) {
	var stats map[string]*statsapi.PodStats
	for _, pod := range in.Pods {
		if pod == nil || !hasLimit(pod) {
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
		signal, message := overLimit(pod, stats[string(pod.UID)])
		if signal == "" {
			continue
		}
		v := Victim{Pod: pod, Signal: signal, Message: message, GracePeriodSeconds: immediateGrace}
		switch {
		case in.Policy.critical(pod):
			v.Exempt = exemptCritical
		case in.backedOff(pod):
			v.Exempt = exemptBackoff
		}
		victims = append(victims, v)
	}
	return victims
}

// limitsAny reports whether a pod may be evicted for its usage alone.
func (p *Policy) limitsAny(pods []*v1.Pod) bool {
	return !p.NoLocalLimits && slices.ContainsFunc(pods, func(pod *v1.Pod) bool { return pod != nil && hasLimit(pod) })
}

// hasLimit reports whether a pod has any limit of local storage. Most pods have none.
func hasLimit(pod *v1.Pod) bool {
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

func overLimit(pod *v1.Pod, stats *statsapi.PodStats) (signal, message string) {
	if stats == nil {
		return "", ""
	}
	if message := emptyDirOver(pod, stats); message != "" {
		return signalEmptyDirLimit, message
	}
	total := stats.EphemeralStorage
	if total != nil && total.UsedBytes != nil {
		if message := podOver(pod, amount(total.UsedBytes)); message != "" {
			return signalPodLimit, message
		}
	}
	if message := containerOver(pod, stats); message != "" {
		return signalContainerLimit, message
	}
	if total == nil || total.UsedBytes == nil { // the parts of the total are known
		used := disk(pod, stats, func(fs *statsapi.FsStats) *uint64 { return fs.UsedBytes }, true, true)
		if message := podOver(pod, used); message != "" {
			return signalPodLimit, message
		}
	}
	return "", ""
}

// emptyDirOver returns a message if an emptyDir volume, of any medium, exceeds its limit.
func emptyDirOver(pod *v1.Pod, stats *statsapi.PodStats) string {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.EmptyDir == nil || v.EmptyDir.SizeLimit == nil || v.EmptyDir.SizeLimit.Sign() <= 0 {
			continue
		}
		for j := range stats.VolumeStats {
			if s := &stats.VolumeStats[j]; s.Name == v.Name && over(amount(s.UsedBytes), *v.EmptyDir.SizeLimit) {
				return fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, v.EmptyDir.SizeLimit.String())
			}
		}
	}
	return ""
}

// podOver returns a message if the disk usage of the pod exceeds the sum of its containers'
// limits.
func podOver(pod *v1.Pod, used int64) string {
	limit, ok := podresource.PodLimits(pod, podresource.PodResourcesOptions{})[v1.ResourceEphemeralStorage]
	if !ok || !over(used, limit) {
		return ""
	}
	return fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", limit.String())
}

// containerOver returns a message if the writable layer and the logs of a container or sidecar
// exceed its limit (rule ev-49).
func containerOver(pod *v1.Pod, stats *statsapi.PodStats) string {
	for c := range podspec.Containers(pod) {
		limit, ok := c.Resources.Limits[v1.ResourceEphemeralStorage]
		if !ok || limit.Sign() == 0 || podspec.RunsToCompletion(pod, c.Name) {
			continue
		}
		for j := range stats.Containers {
			s := &stats.Containers[j]
			if s.Name != c.Name {
				continue
			}
			used := int64(0)
			for _, fs := range []*statsapi.FsStats{s.Logs, s.Rootfs} {
				if fs != nil {
					used = add(used, amount(fs.UsedBytes))
				}
			}
			if over(used, limit) {
				return fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", c.Name, limit.String())
			}
		}
	}
	return ""
}

func over(used int64, limit resource.Quantity) bool { return limit.CmpInt64(used) < 0 }
