package agent_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// A reads counts the calls to a runtime.
type reads struct {
	mu    sync.Mutex
	count map[string]int // by method
}

func (r *reads) see(c fake.Call) fake.Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count[c.Method]++
	return fake.Fault{}
}

// take returns the reads since the last take.
func (r *reads) take() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := r.count
	r.count = map[string]int{}
	return count
}

// No phase change of a pod waits for the next list, and each is read once or
// twice and not with every hint.
func TestPhaseChangesWaitForNoTick(t *testing.T) { // pleg-32
	synctest.Test(t, func(t *testing.T) {
		rt, source, seen := newNode(), new(podsource.Memory), &reads{count: map[string]int{}}
		rt.Inject(seen.see)
		source.Set()
		s := newSpine(t, rt, source, podworker.Hooks{})
		phase := func(pod *v1.Pod, want v1.PodPhase) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := s.sink.Wait(ctx, pod.UID, func(st v1.PodStatus) bool { return st.Phase == want })
			require.NoError(t, err, "%s is not %s in time", pod.Name, want)
			synctest.Wait()
		}
		time.Sleep(3*time.Second + time.Second/2)
		seen.take()

		// From desired to running, ten containers at once.
		images := make([]string, 10)
		for i := range images {
			images[i] = "serves"
		}
		web := newTestPod("web", v1.RestartPolicyAlways, images...)
		source.Set(web)
		phase(web, v1.PodRunning)
		assert.LessOrEqual(t, seen.take()["PodStatus"], 4, "11 things were started")

		// From exited to removed.
		for i := range images {
			require.NoError(t, rt.Exit(web.UID, fmt.Sprint("c", i), 0))
		}
		source.Set()
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		assert.Empty(t, s.Table().States(), "sync, terminating and terminated are behind it")

		// From running to terminated.
		job := newTestPod("job", v1.RestartPolicyNever, "serves")
		source.Set(job)
		phase(job, v1.PodRunning)
		require.NoError(t, rt.Exit(job.UID, "c0", 0))
		phase(job, v1.PodSucceeded)

		// After that there is one list each 5 minutes, and no inspection of any pod:
		// the sync of each minute does not cause one.
		source.Set(job, newTestPod("rests", v1.RestartPolicyAlways, images...))
		time.Sleep(30 * time.Minute)
		seen.take()
		time.Sleep(30 * time.Minute)
		quiet := seen.take()
		assert.LessOrEqual(t, quiet["Pods"], 7)
		assert.Zero(t, quiet["PodStatus"])
		assert.NotZero(t, quiet["SyncPod"])
		require.NoError(t, s.stop())
	})
}
