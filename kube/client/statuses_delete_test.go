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
	"github.com/kubeparts/kubeparts/status"
)

func deleting(pod *v1.Pod) *v1.Pod {
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(30))
	return pod
}

func TestAPodIsDeletedWithoutGraceAndByItsUID(t *testing.T) { // st-70
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, deleting(newPod("web")))
		pod := d.api.Pod("prod", "web")
		require.NoError(t, d.UpdatePodStatus(t.Context(), pod, failedStatus()))
		require.NoError(t, d.DeletePod(t.Context(), pod))
		synctest.Wait()
		assert.Nil(t, d.api.Pod("prod", "web"))
		assert.Equal(t, []string{"patch pods/status prod/web", "delete pods prod/web"}, callsOf(d.api.Calls()), "the least there can be (st-80)")
		require.NoError(t, d.DeletePod(t.Context(), pod), "again is no error, and no call")
		assert.Len(t, callsOf(d.api.Calls()), 2)
	})
}

func TestAPodWithoutADeletionTimestampIsNotDeleted(t *testing.T) { // st-79; virtual-kubelet gets this wrong
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, newPod("web"))
		require.NoError(t, d.DeletePod(t.Context(), d.api.Pod("prod", "web")))
		assert.NotNil(t, d.api.Pod("prod", "web"))
		assert.Empty(t, callsOf(d.api.Calls()))
	})
}

func TestAPodOfThatNameThatIsAnotherOneIsNotDeleted(t *testing.T) { // st-70; virtual-kubelet gets this wrong
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, deleting(newPod("web")))
		pod := d.api.Pod("prod", "web")
		d.faults.set(about("watch", apitest.Fault{Refuse: true}))
		d.api.DropWatches()
		synctest.Wait()
		d.api.Remove("pods", "prod", "web")
		d.api.Put(newPod("web"))
		require.NoError(t, d.DeletePod(t.Context(), pod))
		assert.NotNil(t, d.api.Pod("prod", "web"))
	})
}

func TestADeletionThatFailsIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, deleting(newPod("web")))
		pod := d.api.Pod("prod", "web")
		require.NoError(t, d.UpdatePodStatus(t.Context(), pod, failedStatus()))
		d.faults.set(about("delete", apitest.Fault{Code: 500, Message: "boom"}))
		require.EqualError(t, d.DeletePod(t.Context(), pod), "client: delete pod: boom")
		d.faults.set(nil)
		require.NoError(t, d.DeletePod(t.Context(), pod))
		assert.Nil(t, d.api.Pod("prod", "web"))
	})
}

func TestTheFinalStatusIsWrittenBeforeTheDeletion(t *testing.T) { // st-79, st-80, inv-9
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, deleting(newPod("web")))
		pod := d.api.Pod("prod", "web")
		require.NoError(t, d.UpdatePodStatus(t.Context(), pod, failedStatus()))
		// Another client reverted it.
		back := d.api.Pod("prod", "web")
		back.Status.Phase = v1.PodRunning
		d.faults.set(about("patch", apitest.Fault{Code: 500}))
		d.api.Put(back)
		synctest.Wait()
		require.Error(t, d.DeletePod(t.Context(), pod))
		assert.NotNil(t, d.api.Pod("prod", "web"))
		d.faults.set(nil)
		d.api.Forget()
		require.NoError(t, d.DeletePod(t.Context(), pod))
		assert.Equal(t, []string{"patch pods/status prod/web", "delete pods prod/web"}, callsOf(d.api.Calls()))
	})
}

func TestAFinalizerKeepsThePodAndNothingIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := deleting(newPod("web"))
		pod.Finalizers = []string{"example.com/wait"}
		d := newDesk(t, pod)
		m, err := status.New(status.Config{Sink: d})
		require.NoError(t, err)
		running(t, m.Run)
		m.Finish(d.api.Pod("prod", "web"))
		pass(time.Hour)
		assert.NotNil(t, d.api.Pod("prod", "web"))
		assert.Equal(t, []string{"patch pods/status prod/web", "delete pods prod/web"}, callsOf(d.api.Calls()))
	})
}
