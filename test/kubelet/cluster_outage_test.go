package kubelet

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/certs"
)

// requireFor fails the test if check returns an error within d.
func requireFor(t *testing.T, d time.Duration, check func() error) {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < d; time.Sleep(time.Second) {
		require.NoError(t, check())
	}
}

// clusterAgentAway kills the agent, deletes one of its pods and lets another exit. It starts again with a certificate
// that is about to expire.
func clusterAgentAway(t *testing.T, w *clusterWorld) {
	r := w.room(t, "t-agent-away")
	r.make("steady", spec("trap 'exit 0' TERM; sleep 3600 & wait"))
	r.make("going", spec("trap 'exit 0' TERM; sleep 3600 & wait"))
	quits := spec("sleep 8; exit 3")
	quits.RestartPolicy = v1.RestartPolicyNever
	before := r.untilPhase("steady", v1.PodRunning)
	r.untilPhase("going", v1.PodRunning)
	r.make("quits", quits)
	r.untilPhase("quits", v1.PodRunning)
	w.kill()
	r.delete("going", -1)
	w.untilReady(v1.ConditionUnknown)
	current := filepath.Join(w.dir, "root", "pki", "kubelet-client-current.pem")
	old := w.control.NodeCertificate("node", 5*time.Minute)
	require.NoError(t, os.WriteFile(current, old, 0o600))
	w.start()
	w.untilReady(v1.ConditionTrue)
	r.until("the agent has another certificate", func() error {
		now, err := os.ReadFile(current)
		if err == nil && bytes.Equal(now, old) {
			err = errors.New("it has the old one")
		}
		return err
	})
	require.NoError(t, certs.Valid(current, "node", time.Now().Add(time.Hour)))
	r.untilGone("going")
	pod := r.untilPhase("quits", v1.PodFailed)
	assert.EqualValues(t, 3, pod.Status.ContainerStatuses[0].State.Terminated.ExitCode)
	r.until("the pod counts as ready again", func() error {
		pod, err := r.pod("steady")
		if err != nil {
			return err
		}
		assert.Equal(t, before.Status.ContainerStatuses[0].ContainerID, pod.Status.ContainerStatuses[0].ContainerID, "it was not disturbed")
		for _, c := range pod.Status.Conditions {
			if c.Type == v1.PodReady && c.Status == v1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("%v", pod.Status.Conditions)
	})
}

// outage is the time for which the API server is stopped.
const outage = 2 * time.Minute

// clusterAPIAway stops the API server while pods terminate, exit and restart, and restarts the agent meanwhile.
func clusterAPIAway(t *testing.T, w *clusterWorld) {
	r := w.room(t, "t-api-away")
	r.make("steady", spec("trap 'exit 0' TERM; sleep 3600 & wait"))
	steady := r.untilPhase("steady", v1.PodRunning)
	ends := spec("sleep 20; exit 4")
	ends.RestartPolicy = v1.RestartPolicyNever
	r.make("ends", ends)
	restarts := spec("sleep 15; exit 5")
	r.make("restarts", restarts)
	r.make("leaving", spec("trap 'sleep 10; exit 0' TERM; sleep 3600 & wait"))
	for _, name := range []string{"ends", "restarts", "leaving"} {
		r.untilPhase(name, v1.PodRunning)
	}
	// The API server stops after the agent has observed the deletion, and before the
	// pod has terminated.
	r.delete("leaving", -1)
	r.until("the agent has observed the deletion", func() error {
		if w.pods()["leaving"].DeletionTimestamp == nil {
			return errors.New("it does not")
		}
		return nil
	})
	w.control.StopAPI()
	stopped := time.Now()

	// A static pod needs no API server.
	r.write("outage.yaml", fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: outage, namespace: %s}\nspec:\n  terminationGracePeriodSeconds: 1\n  enableServiceLinks: false\n  containers:\n  - {name: main, image: %q, command: [sh, -c, \"trap 'exit 0' TERM; sleep 3600 & wait\"]}\n", r.name, steady.Spec.Containers[0].Image))
	r.until("the static pod runs", func() error {
		if pod := w.pods()["outage"]; pod.Status.Phase != v1.PodRunning {
			return fmt.Errorf("it is %q", pod.Status.Phase)
		}
		return nil
	})
	r.until("the deleted pod has stopped", func() error {
		if p, is := w.pods()["leaving"]; is && p.Status.Phase == v1.PodRunning {
			return fmt.Errorf("it is %q", p.Status.Phase)
		}
		return nil
	})
	requireFor(t, outage-time.Since(stopped), func() error {
		p := w.pods()["steady"]
		if p.Status.Phase != v1.PodRunning || p.Status.ContainerStatuses[0].ContainerID != steady.Status.ContainerStatuses[0].ContainerID {
			return fmt.Errorf("steady is %v", p.Status)
		}
		if well, why := w.healthz(); !well {
			return fmt.Errorf("the agent is not well: %s", why)
		}
		return nil
	})
	restarted := w.pods()["restarts"].Status.ContainerStatuses[0].RestartCount
	require.Positive(t, restarted)
	// An agent that is restarted meanwhile continues with its checkpoints.
	w.kill()
	w.start()
	r.until("the pods are known again", func() error {
		for _, name := range []string{"steady", "restarts"} {
			if p, is := w.pods()[name]; !is || p.Status.Phase != v1.PodRunning {
				return fmt.Errorf("%s is %q", name, p.Status.Phase)
			}
		}
		return nil
	})
	w.control.StartAPI()

	w.untilReady(v1.ConditionTrue)
	pod := r.untilPhase("ends", v1.PodFailed)
	assert.EqualValues(t, 4, pod.Status.ContainerStatuses[0].State.Terminated.ExitCode)
	r.untilGone("leaving")
	r.until("the restarts are known", func() error {
		pod, err := r.pod("restarts")
		if err == nil && pod.Status.ContainerStatuses[0].RestartCount < restarted {
			err = fmt.Errorf("%d", pod.Status.ContainerStatuses[0].RestartCount)
		}
		return err
	})
	r.untilPhase("outage-node", v1.PodRunning)
	now, err := r.pod("steady")
	require.NoError(t, err)
	assert.Equal(t, steady.Status.ContainerStatuses[0].ContainerID, now.Status.ContainerStatuses[0].ContainerID)
	assert.Zero(t, now.Status.ContainerStatuses[0].RestartCount)
	for name, sandboxes := range r.running() {
		assert.Equal(t, 1, sandboxes, "%s has one sandbox", name)
	}
	r.remove("outage.yaml")
	r.untilGone("outage-node")

	// And new work is done.
	_, err = r.api.AppsV1().Deployments(r.name).Create(t.Context(), deployment("after", 3, "sleep 3600"), metav1.CreateOptions{})
	require.NoError(t, err)
	r.untilAvailable("after", 3)
}
