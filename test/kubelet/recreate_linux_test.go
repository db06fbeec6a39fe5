package kubelet

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// What Kubernetes' node conformance test "MirrorPod … should successfully recreate when
// file is removed and recreated" checks: the pod runs again and its container has been
// restarted once.
func TestAPodWhoseManifestIsRemovedAndCreatedAgainIsRestarted(t *testing.T) {
	a := newAgent(t, "process")
	a.start()
	manifest := manifest("again", containers(`{name: main, image: i, command: [sh, -c, "sleep 3600"]}`), "terminationGracePeriodSeconds: 0")
	a.write("again.yaml", manifest)
	running := func(restarts int32) func() bool {
		return func() bool {
			pod := a.pods()["again"]
			c := pod.Status.ContainerStatuses
			return pod.Status.Phase == v1.PodRunning && len(c) == 1 && c[0].State.Running != nil && c[0].RestartCount == restarts
		}
	}
	a.eventually("the pod runs", running(0))
	first := a.pods()["again"]

	a.remove("again.yaml")
	a.write("again.yaml", manifest)
	a.eventually("the container was restarted once", running(1))
	second := a.pods()["again"]
	if first.UID != second.UID || first.Status.ContainerStatuses[0].ContainerID == second.Status.ContainerStatuses[0].ContainerID {
		t.Errorf("UID %s, container %s became UID %s, container %s", first.UID, first.Status.ContainerStatuses[0].ContainerID,
			second.UID, second.Status.ContainerStatuses[0].ContainerID)
	}

	a.remove("again.yaml")
	a.write("again.yaml", manifest)
	a.eventually("the container was restarted again", running(2))
	if strings.Contains(a.out.String(), "CrashLoopBackOff") {
		t.Error("the pod, which has not crashed, has a crash back-off")
	}
}
