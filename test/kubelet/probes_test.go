package kubelet

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// The effects of probe results on containers, on each runtime.

func TestProbesOnProcesses(t *testing.T) {
	t.Parallel()
	probesHaveEffects(t, onProcesses(t))
}

func TestIntegrationProbesOnContainerd(t *testing.T) {
	t.Parallel()
	probesHaveEffects(t, onContainerd(t))
}

// serves is a web server with a slow start: webServer for plain processes, and
// busybox's in containers.
const serves = `sleep 2; command -v ` + webServer + ` >/dev/null && exec ` + webServer + ` $POD_IP:8080; mkdir -p /www; echo hello >/www/index.html; exec httpd -f -p 8080 -h /www`

// probedPods are pods with probes of each type and kind, once a second.
var probedPods = map[string]string{
	"web": manifest("web", containers(container("main", serves, "ports: [{name: http, containerPort: 8080}]",
		"startupProbe: {tcpSocket: {port: http}, periodSeconds: 1, failureThreshold: 60}",
		"readinessProbe: {httpGet: {port: http, path: /index.html}, periodSeconds: 1, timeoutSeconds: 5}",
		"livenessProbe: {exec: {command: [sh, -c, 'exit 0']}, periodSeconds: 1, timeoutSeconds: 20}"))),
	"sick": manifest("sick", containers(container("main", untilTerm,
		"livenessProbe: {exec: {command: [sh, -c, 'echo out of order; exit 1']}, periodSeconds: 1, timeoutSeconds: 20, failureThreshold: 2}"))),
	"hangs": manifest("hangs", containers(container("main", untilTerm,
		"livenessProbe: {exec: {command: [sleep, '4321']}, periodSeconds: 1, failureThreshold: 1}"))),
	"unstarted": manifest("unstarted", containers(container("main", untilTerm,
		"startupProbe: {tcpSocket: {port: 8081}, periodSeconds: 1, timeoutSeconds: 5, failureThreshold: 3}",
		"readinessProbe: {exec: {command: [sh, -c, 'exit 0']}, periodSeconds: 1, timeoutSeconds: 20}"))),
	"once": manifest("once", never, containers(container("main", untilTerm,
		"livenessProbe: {httpGet: {port: 8082}, periodSeconds: 1, timeoutSeconds: 5, failureThreshold: 2}"))),
	"wavers": manifest("wavers", containers(container("main", untilTerm,
		"readinessProbe: {exec: {command: [sh, -c, 'test $(( $(date +%s) / 6 % 2 )) = 0']}, periodSeconds: 1, timeoutSeconds: 20, failureThreshold: 1}"))),
	"impatient": manifest("impatient", "terminationGracePeriodSeconds: 600", containers(container("main", "trap 'sleep 8; exit 0' TERM; sleep 3600 & wait",
		"livenessProbe: {tcpSocket: {port: 8083}, periodSeconds: 1, timeoutSeconds: 5, failureThreshold: 1, terminationGracePeriodSeconds: 1}"))),
	"gate": manifest("gate", inits(container("helper", untilTerm, sidecar,
		"startupProbe: {exec: {command: [sh, -c, 'exit 0']}, initialDelaySeconds: 3, periodSeconds: 1, timeoutSeconds: 20}")),
		containers(container("main", untilTerm))),
	"unable": manifest("unable", containers(container("main", untilTerm,
		"readinessProbe: {httpGet: {port: missing}, periodSeconds: 1}"))),
}

func probesHaveEffects(t *testing.T, w *world) {
	for name, manifest := range probedPods {
		w.put(name, manifest)
	}
	w.start("--v=4") // logs why a container was stopped
	main := func(name string) v1.ContainerStatus {
		if all := w.pods()[name].Status.ContainerStatuses; len(all) == 1 {
			return all[0]
		}
		return v1.ContainerStatus{}
	}
	restarted := func(name string) error {
		if c := main(name); c.RestartCount == 0 {
			return fmt.Errorf("%s was not restarted: %+v", name, c)
		}
		return nil
	}
	ready := func(name string, want bool) error {
		c := main(name)
		conditions := map[v1.PodConditionType]v1.ConditionStatus{}
		for _, condition := range w.pods()[name].Status.Conditions {
			conditions[condition.Type] = condition.Status
		}
		wantStatus := map[bool]v1.ConditionStatus{true: v1.ConditionTrue, false: v1.ConditionFalse}[want]
		if c.State.Running == nil || c.Ready != want || conditions[v1.ContainersReady] != wantStatus || conditions[v1.PodReady] != wantStatus {
			return fmt.Errorf("%s should be running and ready: %v, but it is %+v, conditions %v", name, want, c, conditions)
		}
		return nil
	}

	w.until("web has started, and is ready", func() error {
		return errors.Join(ready("web", true))
	})
	require.True(t, *main("web").Started)
	w.until("containers that fail a liveness or startup probe are restarted", func() error {
		return errors.Join(restarted("sick"), restarted("hangs"), restarted("unstarted"), restarted("impatient"))
	})
	w.until("a container that must not restart is stopped", func() error {
		if phase := w.pods()["once"].Status.Phase; phase != v1.PodSucceeded && phase != v1.PodFailed {
			return fmt.Errorf("once is %s", phase)
		}
		return nil
	})
	w.until("the probe's own grace holds, and not the pod's", func() error {
		if end := main("impatient").LastTerminationState.Terminated; end == nil || end.ExitCode != 137 {
			return fmt.Errorf("impatient's last end is %v", end)
		}
		return nil
	})
	require.False(t, main("unstarted").Ready, "it never started, so that its readiness is not probed")
	w.until("readiness comes", func() error { return ready("wavers", true) })
	w.until("readiness is lost", func() error { return ready("wavers", false) })
	w.until("readiness comes again", func() error { return ready("wavers", true) })
	require.Zero(t, main("wavers").RestartCount)
	require.NoError(t, ready("unable", false))
	w.until("a container that waits for a sidecar starts after it", func() error { return ready("gate", true) })
	gate := w.pods()["gate"].Status
	helper := gate.InitContainerStatuses[0]
	require.True(t, *helper.Started)
	require.GreaterOrEqual(t, gate.ContainerStatuses[0].State.Running.StartedAt.Sub(helper.State.Running.StartedAt.Time), 2*time.Second)

	logged := w.out.String()
	for _, words := range []string{
		"sick-node                Unhealthy: Liveness probe failed: out of order\n",
		"hangs-node               Unhealthy: Liveness probe failed: command timed out: \"sleep 4321\" timed out after 1s\n",
		"unstarted-node           Unhealthy: Startup probe failed: dial tcp ",
		"wavers-node              Unhealthy: Readiness probe failed: \n",
		`unable-node              Unhealthy: Readiness probe errored`,
		`invalid port number: "missing" is neither a number nor the name of a port of container main`,
	} {
		require.Contains(t, logged, words)
	}
	require.NotContains(t, logged, "unstarted-node           Unhealthy: Readiness")

	// Another agent continues where this one stopped (prober-70).
	require.NoError(t, ready("web", true))
	web := main("web")
	w.kill()
	before := len(w.out.String())
	w.start()
	w.until("the next agent reports the pod as ready", func() error { return ready("web", true) })
	require.Equal(t, web.ContainerID, main("web").ContainerID)
	for line := range strings.Lines(w.out.String()[before:]) {
		require.False(t, strings.Contains(line, " web-node ") && strings.Contains(line, "ready=0/1"), "it was ready all the time: %s", line)
	}

	require.NoError(t, w.interrupt())
	require.Empty(t, w.processes())
}
