package podwing

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/runtime"
)

// fakeMirrors are mirror pods that were read after a time.
type fakeMirrors struct {
	at   time.Time
	pods map[string]*v1.Pod
}

func (f fakeMirrors) Synced() bool { return !time.Now().Before(f.at) }

func (f fakeMirrors) Mirror(_, name string) *v1.Pod {
	if !f.Synced() {
		return nil
	}
	return f.pods[name]
}

func staticPod(name string, change ...func(*v1.Pod)) *v1.Pod {
	pod := new(v1.Pod)
	pod.Name, pod.UID = name, types.UID(name)
	pod.Annotations = map[string]string{runtime.ConfigHashAnnotation: name}
	pod.Spec.RestartPolicy = v1.RestartPolicyAlways
	pod.Spec.Containers = []v1.Container{{Name: "c", ReadinessProbe: &v1.Probe{}}}
	pod.Status.Phase = v1.PodPending
	for _, c := range change {
		c(pod)
	}
	return pod
}

func mirrorWith(annotation string, phase v1.PodPhase) *v1.Pod {
	pod := new(v1.Pod)
	pod.Annotations = map[string]string{v1.MirrorPodAnnotationKey: annotation}
	pod.Status = v1.PodStatus{Phase: phase, ContainerStatuses: []v1.ContainerStatus{{Name: "c", Ready: true}}}
	return pod
}

func TestEarlierStatus(t *testing.T) {
	never := func(pod *v1.Pod) { pod.Spec.RestartPolicy = v1.RestartPolicyNever }
	ownHash := func(pod *v1.Pod) { pod.Annotations[runtime.ConfigHashAnnotation] = "hash" }
	for _, tc := range []struct {
		name   string
		pod    *v1.Pod
		mirror *v1.Pod
		want   bool
	}{
		{"no mirror pod", staticPod("a"), nil, false},
		{"the mirror pod", staticPod("a"), mirrorWith("a", v1.PodRunning), true},
		{"pending", staticPod("a"), mirrorWith("a", v1.PodPending), true},
		{"terminated", staticPod("a"), mirrorWith("a", v1.PodFailed), false},
		{"of another manifest", staticPod("a"), mirrorWith("b", v1.PodRunning), false},
		{"a UID in the manifest, mirror pod of a kubelet", staticPod("a", ownHash), mirrorWith("a", v1.PodRunning), true},
		{"a UID in the manifest, own mirror pod", staticPod("a", ownHash), mirrorWith("hash", v1.PodRunning), true},
		{"may not restart", staticPod("a", never), mirrorWith("a", v1.PodRunning), false},
	} {
		got, ok := earlierStatus(tc.pod, tc.mirror)
		assert.Equal(t, tc.want, ok, tc.name)
		if tc.want {
			assert.Equal(t, tc.mirror.Status, got, tc.name)
		}
	}
}

func TestStaticPodsHaveTheStatusesOfTheirMirrorPods(t *testing.T) {
	noProbe := func(pod *v1.Pod) { pod.Spec.Containers[0].ReadinessProbe = nil }
	for _, tc := range []struct {
		name   string
		pod    *v1.Pod
		synced time.Duration // of the mirror pods
		exists bool
		after  time.Duration // of the first set
		want   v1.PodPhase
	}{
		{"read before", staticPod("a"), 0, true, 0, v1.PodRunning},
		{"read soon", staticPod("a"), time.Second, true, time.Second, v1.PodRunning},
		{"the API server is unavailable", staticPod("a"), time.Hour, true, mirrorPatience, v1.PodPending},
		{"a new pod does not wait", staticPod("a"), time.Second, false, 0, v1.PodPending},
		{"without probes", staticPod("a", noProbe), time.Second, true, 0, v1.PodPending},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				var sets [][]*v1.Pod
				var first time.Duration
				m := mirrored{
					Source: podsource.Func(func(_ context.Context, set func([]*v1.Pod)) error {
						set([]*v1.Pod{tc.pod})
						first = time.Since(begun)
						set([]*v1.Pod{tc.pod, staticPod("b")})
						set(nil)
						set([]*v1.Pod{tc.pod})
						return nil
					}),
					Pods:   fakeMirrors{begun.Add(tc.synced), map[string]*v1.Pod{"a": mirrorWith("a", v1.PodRunning), "b": mirrorWith("b", v1.PodRunning)}},
					Exists: func(types.UID) bool { return tc.exists },
				}
				assert.NoError(t, m.Run(t.Context(), func(pods []*v1.Pod) { sets = append(sets, pods) }))
				assert.Equal(t, tc.after, first.Truncate(20*time.Millisecond))
				assert.Equal(t, tc.want, sets[0][0].Status.Phase)
				assert.Equal(t, tc.want, sets[1][0].Status.Phase, "it is not another pod with each set")
				assert.Equal(t, v1.PodPending, sets[1][1].Status.Phase, "a new pod")
				assert.Equal(t, v1.PodPending, sets[3][0].Status.Phase, "it was removed meanwhile")
				assert.Equal(t, v1.PodPending, tc.pod.Status.Phase, "the pod of the source is unchanged")
			})
		})
	}
}
