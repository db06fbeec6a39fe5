package metrics_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/kube/metrics"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
	"github.com/kubeparts/kubeparts/status"
)

// changed reports a status change of a pod.
func (w world) changed(pod *v1.Pod, old, new v1.PodStatus) {
	w.Status().Changed(status.ChangedInfo{Pod: pod, Old: old, New: new})
}

func pending() v1.PodStatus { return v1.PodStatus{Phase: v1.PodPending} }

func running(all bool) v1.PodStatus {
	s := v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: make([]v1.ContainerStatus, 1)}
	if all {
		s.ContainerStatuses[0].State.Running = new(v1.ContainerStateRunning)
	}
	return s
}

// sums returns the sums of the three durations of starts: until Running, in all, and
// without images and init containers; "" for one that was not measured.
func (w world) sums(t *testing.T) (sums [3]string) {
	t.Helper()
	for i, name := range []string{"kubelet_pod_start_duration_seconds", "kubelet_pod_start_total_duration_seconds", "kubelet_pod_start_sli_duration_seconds"} {
		h := w.families(t, metrics.Path)[name].GetMetric()[0].GetHistogram()
		if h.GetSampleCount() > 0 {
			sums[i] = fmt.Sprint(time.Duration(h.GetSampleSum() * float64(time.Second)).Round(time.Millisecond))
		}
	}
	return sums
}

func TestHowLongPodsTakeToStart(t *testing.T) {
	finished := func(from, to time.Duration) v1.ContainerStatus {
		now := time.Now()
		return v1.ContainerStatus{State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			StartedAt: metav1.NewTime(now.Add(from)), FinishedAt: metav1.NewTime(now.Add(to)),
		}}}
	}
	for name, c := range map[string]struct {
		pod  func(*v1.Pod)
		play func(w world, pod *v1.Pod)
		want [3]string
	}{
		"pending, running, all of it runs": {
			play: func(w world, pod *v1.Pod) {
				w.changed(pod, v1.PodStatus{}, pending())
				time.Sleep(2 * time.Second)
				w.changed(pod, pending(), running(false))
				time.Sleep(time.Second)
				w.changed(pod, running(false), running(true))
				time.Sleep(time.Second)
				w.changed(pod, running(true), running(false)) // it crashes, and restarts
				w.changed(pod, running(false), running(true))
			},
			want: [3]string{"2s", "13s", "13s"}, // it was made 10 s before it was seen
		},
		"images and init containers": {
			play: func(w world, pod *v1.Pod) {
				w.changed(pod, v1.PodStatus{}, pending())
				time.Sleep(4 * time.Second)
				w.remote.Images().Pulled(images.PullInfo{Pod: pod, Waited: time.Second, Took: 2 * time.Second})
				w.remote.Images().Pulled(images.PullInfo{Pod: pod, Took: time.Second})
				time.Sleep(3 * time.Second)
				s := running(true)
				s.InitContainerStatuses = []v1.ContainerStatus{finished(-2*time.Second, -time.Second), finished(-time.Second, 0)}
				w.changed(pod, pending(), s)
			},
			want: [3]string{"7s", "17s", "12s"},
		},
		"a volume that must be provisioned": {
			pod: func(pod *v1.Pod) {
				pod.Spec.Volumes = []v1.Volume{{VolumeSource: v1.VolumeSource{PersistentVolumeClaim: new(v1.PersistentVolumeClaimVolumeSource)}}}
			},
			play: func(w world, pod *v1.Pod) {
				w.changed(pod, v1.PodStatus{}, pending())
				w.changed(pod, pending(), running(true))
			},
			want: [3]string{"0s", "10s", ""},
		},
		"a static pod": {
			pod: func(pod *v1.Pod) {
				pod.CreationTimestamp = metav1.Time{}
				pod.Annotations = map[string]string{runtime.ConfigSourceAnnotation: "file", runtime.ConfigSeenAnnotation: time.Now().Add(-time.Second).Format(time.RFC3339Nano)}
			},
			play: func(w world, pod *v1.Pod) {
				w.changed(pod, v1.PodStatus{}, pending())
				w.changed(pod, pending(), running(true))
			},
			want: [3]string{"1s", "1s", ""},
		},
		"one that ends before it was observed running": {
			play: func(w world, pod *v1.Pod) {
				w.changed(pod, v1.PodStatus{}, pending())
				time.Sleep(time.Second)
				w.changed(pod, pending(), v1.PodStatus{Phase: v1.PodSucceeded})
			},
			want: [3]string{"1s", "", ""},
		},
		"one that fails before it runs": {
			play: func(w world, pod *v1.Pod) {
				w.changed(pod, v1.PodStatus{}, pending())
				w.changed(pod, pending(), v1.PodStatus{Phase: v1.PodFailed})
				w.changed(pod, pending(), running(true)) // too late
			},
		},
		"one that an earlier agent has started": {
			play: func(w world, pod *v1.Pod) { w.changed(pod, running(true), running(true)) },
		},
		"one that is deleted before it runs": {
			play: func(w world, pod *v1.Pod) {
				w.changed(pod, v1.PodStatus{}, pending())
				w.Status().Delivered(status.DeliveredInfo{Pod: pod, Deleted: true})
				w.changed(pod, v1.PodStatus{}, running(true))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID("u"), CreationTimestamp: metav1.NewTime(time.Now().Add(-10 * time.Second))}}
				if c.pod != nil {
					c.pod(pod)
				}
				c.play(w, pod)
				assert.Equal(t, c.want, w.sums(t))
			})
		})
	}
}
