//go:build unix

package kubelet

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The machine stops, and real containers terminate in the order of their priorities:
// one that handles SIGTERM, one that is killed when its grace period is over, and
// critical ones last.
func TestIntegrationContainersEndInOrderWhenTheMachineStops(t *testing.T) { // sh-5, sh-7, sh-9, sh-11
	w := onContainerd(t)
	ends := func(name string, priority, grace int, onTerm string) {
		w.put(name, manifest(name, fmt.Sprintf("priority: %d", priority), fmt.Sprintf("terminationGracePeriodSeconds: %d", grace),
			"volumes: [{name: signals, hostPath: {path: WORLD}}]",
			containers(container("main", fmt.Sprintf("trap 'echo %[1]s >> /world/signals; %[2]s' TERM; echo %[1]s >> /world/up; while true; do sleep 0.1; done", name, onTerm),
				"volumeMounts: [{name: signals, mountPath: /world}]"))))
	}
	ends("dns", 2_000_000_000, 30, "exit 0")
	ends("web", 0, 30, "sleep 1; exit 0")
	ends("deaf", 0, 2, ":")
	w.start("--shutdown-on=http", "--shutdown-grace-period=160s", "--shutdown-grace-period-critical-pods=80s")
	names := []string{"dns", "web", "deaf"}
	w.untilUp(names...)
	answer, err := http.DefaultClient.Do(w.shutdownRequest(http.MethodPost, ""))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusAccepted, answer.StatusCode)
	w.untilLogged("terminated 3 pods in ")

	reported := signalOrder(t, w)
	assert.ElementsMatch(t, names, reported)
	assert.Equal(t, "dns", reported[len(reported)-1])
	pods := w.pods()
	for _, name := range names {
		wasShutDown(t, pods[name])
		ended := pods[name].Status.ContainerStatuses[0].State.Terminated
		if assert.NotNil(t, ended, name) {
			assert.EqualValues(t, map[string]int{"deaf": 137}[name], ended.ExitCode, name)
		}
	}
	for _, c := range w.mustList().containers {
		assert.False(t, c.running, "%s runs", c)
	}
	all, err := w.families("/metrics")
	require.NoError(t, err)
	began, over := sample(all["kubelet_graceful_shutdown_start_time_seconds"]), sample(all["kubelet_graceful_shutdown_end_time_seconds"])
	assert.Positive(t, began)
	assert.GreaterOrEqual(t, over, began)
}
