//go:build linux

package adopt

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// waiting is the manifest of a pod that exits with code 7 as soon as its file exists.
func waiting(name string, policy v1.RestartPolicy) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  restartPolicy: %[2]s
  terminationGracePeriodSeconds: 1
  volumes: [{name: control, hostPath: {path: CONTROL}}]
  containers:
  - name: main
    image: kubeparts.test/busybox:1
    command: [sh, -c, "while [ ! -e /control/%[1]s ]; do sleep 0.1; done; rm /control/%[1]s; echo over > /dev/termination-log; exit 7"]
    volumeMounts: [{name: control, mountPath: /control}]
`, name, policy)
}

// Exits while no kubelet runs are reported once and lead to one restart, if the policy has
// one; a manifest that is removed meanwhile stops its pod.
func TestIntegrationExitsBetweenKubeletsAreNotLost(t *testing.T) {
	for _, real := range kubelets(t) {
		t.Run(real.name, func(t *testing.T) {
			n := newNode(t)
			names := map[string]v1.RestartPolicy{"never": v1.RestartPolicyNever, "onfailure": v1.RestartPolicyOnFailure, "always": v1.RestartPolicyAlways}
			for name, policy := range names {
				for _, to := range []string{"1", "2"} {
					n.write(name+to+".yaml", waiting(name+to, policy))
				}
			}
			n.write("removed1.yaml", waiting("removed1", v1.RestartPolicyAlways))
			n.write("removed2.yaml", waiting("removed2", v1.RestartPolicyAlways))
			n.start(real)
			n.untilSettled("never1", "never2", "onfailure1", "onfailure2", "always1", "always2", "removed1", "removed2")
			for i, next := range []program{kubeparts(t), real} {
				to := fmt.Sprint(i + 1)
				n.stop()
				for name := range names {
					n.exitNow(name + to)
				}
				n.remove("removed" + to + ".yaml")
				n.start(next)
				n.until(next.name+" reports the exits", func() error {
					pods, err := n.pods()
					if err != nil {
						return err
					}
					for name, policy := range names {
						if err := exitedOnce(pods[name+to], policy); err != nil {
							return fmt.Errorf("%s: %w", name+to, err)
						}
					}
					if _, is := pods["removed"+to]; is {
						return fmt.Errorf("pod removed%s is still listed", to)
					}
					return nil
				})
				n.passSyncs()
				pods := n.mustPods()
				for name, policy := range names {
					assert.NoError(t, exitedOnce(pods[name+to], policy), "%s: %s", next.name, name+to)
				}
			}
		})
	}
}

// exitNow makes a pod's container exit, and waits until the runtime has noticed.
func (n *node) exitNow(name string) {
	n.t.Helper()
	require.NoError(n.t, os.WriteFile(filepath.Join(n.dir, "control", name), nil, 0o644))
	n.until(name+" exits", func() error {
		list, err := lab.List(n.t.Context(), n.daemon.Endpoint)
		for _, c := range list.Containers {
			if c.Labels["io.kubernetes.pod.name"] == name+"-node" && !strings.HasSuffix(c.State.String(), "EXITED") {
				err = fmt.Errorf("%v", c.State)
			}
		}
		return err
	})
}

// exitedOnce returns an error unless the status of the pod has the exit, and one restart
// if the policy has one.
func exitedOnce(pod v1.Pod, policy v1.RestartPolicy) error {
	if len(pod.Status.ContainerStatuses) != 1 {
		return fmt.Errorf("it has %d container statuses", len(pod.Status.ContainerStatuses))
	}
	c := pod.Status.ContainerStatuses[0]
	ended, restarts := c.LastTerminationState.Terminated, int32(1)
	if policy == v1.RestartPolicyNever {
		ended, restarts = c.State.Terminated, 0
	}
	switch {
	case ended == nil || ended.ExitCode != 7 || ended.Reason != "Error" || ended.Message != "over\n":
		return fmt.Errorf("its exit is %+v of %+v", ended, c)
	case c.RestartCount != restarts:
		return fmt.Errorf("it has %d restarts", c.RestartCount)
	case restarts == 0 && pod.Status.Phase != v1.PodFailed:
		return fmt.Errorf("its phase is %s", pod.Status.Phase)
	case restarts == 1 && c.State.Running == nil:
		return fmt.Errorf("it is %+v", c.State)
	}
	return nil
}
