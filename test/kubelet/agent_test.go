package kubelet

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

func TestTheExamplePodsDoWhatTheirFilesSay(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of real time")
	}
	a := newAgent(t, "process")
	a.manifests = "pods"
	a.start()
	a.eventually("web serves, job is done, crash backs off, probed is ready", func() bool {
		pods := a.pods()
		crash, probed := pods["crash"].Status.ContainerStatuses, pods["probed"].Status.ContainerStatuses
		return pods["web"].Status.Phase == v1.PodRunning && pods["job"].Status.Phase == v1.PodSucceeded &&
			len(crash) == 2 && crash[0].RestartCount == 1 && crash[0].State.Waiting != nil &&
			crash[0].State.Waiting.Reason == "CrashLoopBackOff" && crash[1].Ready &&
			len(probed) == 1 && probed[0].Ready && probed[0].RestartCount == 0
	})
	ok, health := a.healthz()
	require.True(t, ok, health)
}
