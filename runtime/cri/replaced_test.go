package cri_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/status"
)

// A container that fails its liveness probe and exits with 0 when it is stopped has not completed
// (k/k 109537), also after a restart of the agent during the back-off.
func TestAContainerThatIsStoppedToBeRestartedDoesNotCompleteByItsExitCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.has("img:1")
		next := agents(t, f, cri.Config{})
		web := container("web")
		web.LivenessProbe = &v1.Probe{}
		pod := podOf(web)
		pod.Spec.RestartPolicy = v1.RestartPolicyOnFailure
		rt, _ := next()
		up(t, f, rt, pod)
		f.before = func(op, name string) error {
			if op == "StopContainer" {
				f.exits(name, 0)
			}
			return nil
		}
		var reported v1.PodStatus
		for range 12 {
			seen, err := rt.PodStatus(t.Context(), pod.UID)
			require.NoError(t, err)
			before := reported
			reported = status.Compute(status.Facts{Pod: pod, Observed: seen, Previous: reported, Now: time.Now()})
			assert.Equal(t, v1.PodRunning, reported.Phase)
			if len(before.ContainerStatuses) > 0 {
				// The API server takes an exit with 0 for final.
				assert.Nil(t, before.ContainerStatuses[0].State.Terminated)
			}
			newest := seen.Container("web")
			results := &runtime.ProbeResults{Liveness: map[string]runtime.ProbeResult{newest.ID: runtime.ProbeFailure}}
			if newest.State != runtime.ContainerRunning {
				results = new(runtime.ProbeResults)
			}
			res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod, Probes: results})
			if !res.RetryAt.IsZero() {
				require.Error(t, err)
				rt, _ = next() // the agent is restarted
				time.Sleep(time.Until(res.RetryAt))
			}
			time.Sleep(time.Second)
		}
		assert.Greater(t, f.newest("web").Config.Metadata.Attempt, uint32(4))
	})
}
