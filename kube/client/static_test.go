package client_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// newStatic returns a static pod, as a source creates one from a manifest.
func newStatic(hash string) *v1.Pod {
	pod := newPod("etcd-node-1")
	pod.UID, pod.ManagedFields = "static-uid", nil
	pod.Annotations = map[string]string{runtime.ConfigSourceAnnotation: podsource.FileSource, runtime.ConfigHashAnnotation: hash}
	return pod
}

var owner = metav1.OwnerReference{Name: nodeName, UID: "node-uid"}

func mirrorOf(t *testing.T, pod *v1.Pod) *v1.Pod {
	mirror, err := podworker.MirrorPod(pod, owner)
	require.NoError(t, err)
	mirror.UID, mirror.ResourceVersion = "", ""
	return mirror
}

func TestTheStatusOfAStaticPodGoesToItsMirror(t *testing.T) { // st-65, mir-5, ps-3
	synctest.Test(t, func(t *testing.T) {
		static := newStatic("h1")
		d := newDesk(t)
		require.NoError(t, d.UpdatePodStatus(t.Context(), static, runningStatus()), "no mirror pod is no failure")
		pass(time.Hour)
		assert.Empty(t, callsOf(d.api.Calls()))

		d.api.Put(mirrorOf(t, static))
		synctest.Wait()
		mirror := d.api.Pod("prod", static.Name)
		assert.Equal(t, v1.PodRunning, mirror.Status.Phase, "written when it came")
		assert.Equal(t, []string{"patch pods/status prod/etcd-node-1"}, callsOf(d.api.Calls()))
		assert.Contains(t, string(d.api.Calls("patch")[0].Body), string(mirror.UID))

		next := runningStatus()
		next.PodIP = "10.0.0.1"
		require.NoError(t, d.UpdatePodStatus(t.Context(), static, next))
		assert.Equal(t, "10.0.0.1", d.api.Pod("prod", static.Name).Status.PodIP)

		// It is removed, and made again (mir-6).
		d.api.Remove("pods", "prod", static.Name)
		synctest.Wait()
		require.NoError(t, d.UpdatePodStatus(t.Context(), static, next))
		d.api.Forget()
		d.api.Put(mirrorOf(t, static))
		synctest.Wait()
		assert.Equal(t, "10.0.0.1", d.api.Pod("prod", static.Name).Status.PodIP)
		assert.Len(t, callsOf(d.api.Calls()), 1)
		pass(time.Hour)
		assert.Len(t, callsOf(d.api.Calls()), 1)
	})
}

func TestTheMirrorOfAnotherManifestIsLeftAlone(t *testing.T) { // mir-4
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.api.Put(mirrorOf(t, newStatic("old")))
		synctest.Wait()
		require.NoError(t, d.UpdatePodStatus(t.Context(), newStatic("new"), runningStatus()))
		pass(time.Hour)
		assert.Empty(t, callsOf(d.api.Calls()))
	})
}

func TestAMirrorIsNotDeletedForItsStatus(t *testing.T) { // st-79
	synctest.Test(t, func(t *testing.T) {
		static := newStatic("h1")
		d := newDesk(t)
		d.api.Put(deleting(mirrorOf(t, static)))
		synctest.Wait()
		require.NoError(t, d.UpdatePodStatus(t.Context(), static, failedStatus()))
		require.NoError(t, d.DeletePod(t.Context(), static))
		assert.NotNil(t, d.api.Pod("prod", static.Name))
		assert.Empty(t, d.api.Calls("delete"))
	})
}

func TestAMirrorThatCannotBeWrittenIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		static := newStatic("h1")
		d := newDesk(t)
		require.NoError(t, d.UpdatePodStatus(t.Context(), static, runningStatus()))
		d.faults.set(about("patch", apitest.Fault{Code: 500}))
		d.api.Put(mirrorOf(t, static))
		pass(10 * time.Minute)
		d.faults.set(nil)
		pass(time.Minute)
		assert.Equal(t, v1.PodRunning, d.api.Pod("prod", static.Name).Status.Phase)

		// The back-off of the next failure is the shortest one.
		d.api.Remove("pods", "prod", static.Name)
		synctest.Wait()
		d.faults.set(about("patch", apitest.Fault{Code: 500}))
		d.api.Put(mirrorOf(t, static))
		synctest.Wait()
		d.faults.set(nil)
		pass(5 * time.Second)
		assert.Equal(t, v1.PodRunning, d.api.Pod("prod", static.Name).Status.Phase)
	})
}
