package manifest

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/internal/staticuid"
	"github.com/kubeparts/kubeparts/runtime"
)

// staticUID returns the UID of the static pod of a manifest: that of a kubelet of this version of
// Kubernetes, unless exists reports that the node has the pod under the UID of another known one,
// which may be newer: the node may have been downgraded. exists may be nil.
func staticUID(decoded *v1.Pod, nodeName, origin string, exists func(types.UID) bool) types.UID {
	from := staticuid.Origin{Node: nodeName}
	if url, ok := strings.CutPrefix(origin, "url:"); ok {
		from.URL = url
	} else {
		from.File = strings.TrimPrefix(origin, "file:")
	}
	const current = staticuid.Release(runtime.KubernetesMinor)
	uid := current.UID(defaultOf(current, decoded), from)
	if exists == nil || exists(uid) {
		return uid
	}
	for _, r := range staticuid.Releases {
		if r == current {
			continue
		}
		if other := r.UID(defaultOf(r, decoded), from); exists(other) {
			return other
		}
	}
	return uid
}

// defaultOf returns a copy of the pod with the default values of a kubelet of the release.
func defaultOf(r staticuid.Release, decoded *v1.Pod) *v1.Pod {
	if r >= 38 {
		decoded = decoded.DeepCopy()
		staticuid.FormatQuantities(decoded)
	}
	pod := defaultAllButPodResources(decoded)
	if r <= 36 { // later ones leave the pod's resources to the API server
		defaultHugePages(pod)
		defaultPodResources(pod)
	}
	if r <= 34 { // image volumes were not enabled by default
		for i, v := range decoded.Spec.Volumes {
			if v.Image != nil {
				pod.Spec.Volumes[i].Image.PullPolicy = v.Image.PullPolicy
			}
		}
	}
	return pod
}

// defaultHugePages limits the huge pages of a pod with resources of its own to the sum of
// the limits of its containers, if the pod has neither a limit nor a request.
func defaultHugePages(pod *v1.Pod) {
	res := pod.Spec.Resources
	if res == nil || len(res.Limits) == 0 && len(res.Requests) == 0 {
		return
	}
	for name, limit := range resource.AggregateContainerLimits(pod, resource.PodResourcesOptions{}) {
		_, limited := res.Limits[name]
		_, requested := res.Requests[name]
		if limited || requested || !podspec.IsHugePages(name) {
			continue
		}
		if res.Limits == nil {
			res.Limits = make(v1.ResourceList)
		}
		res.Limits[name] = limit.DeepCopy()
	}
}
