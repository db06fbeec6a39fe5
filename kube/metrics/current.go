package metrics

import (
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// currentPods returns the usage of the pods that exist in the API, one for each namespace and
// name, which are the labels of /metrics/resource. A deleted pod whose processes cannot be
// killed is not one of them: its successor, here or on another node, has the same name.
func currentPods(list []statsapi.PodStats, pods Pods) []statsapi.PodStats {
	removed := map[types.UID]bool{}
	desired := map[types.NamespacedName]types.UID{}
	if pods != nil {
		for _, p := range pods.States() {
			removed[p.UID] = p.Removed
		}
		deleted := map[types.NamespacedName]bool{}
		for _, pod := range pods.Pods() {
			name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
			if _, several := desired[name]; !several || deleted[name] {
				desired[name], deleted[name] = pod.UID, pod.DeletionTimestamp != nil
			}
		}
	}
	at := map[types.NamespacedName]int{}
	var out []statsapi.PodStats
	for _, p := range list {
		uid, name := types.UID(p.PodRef.UID), types.NamespacedName{Namespace: p.PodRef.Namespace, Name: p.PodRef.Name}
		if is, ok := desired[name]; removed[uid] || ok && is != uid {
			continue
		}
		i, again := at[name]
		switch {
		case !again:
			at[name] = len(out)
			out = append(out, p)
		case out[i].StartTime.Before(&p.StartTime):
			out[i] = p
		}
	}
	return out
}
