//go:build linux

package adopt

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// The static pods of a kubelet are taken over, and back, and over again.
func TestIntegrationStaticPodsAreTakenOverBothWays(t *testing.T) {
	for _, real := range kubelets(t) {
		t.Run(real.name, func(t *testing.T) {
			n := newNode(t)
			names := n.writeCorpus()
			n.start(real)
			n.untilSettled(names...)
			before, mounts := n.instances(), n.mounts()
			statuses := n.statuses()
			for _, next := range []program{kubeparts(t), real, kubeparts(t)} {
				n.stop()
				n.start(next)
				n.untilSettled(names...)
				n.passSyncs()
				require.Empty(t, changed(before, n.instances()), "%s restarts nothing", next.name)
				assert.Equal(t, mounts, n.mounts(), "%s keeps the mounts", next.name)
				assert.Empty(t, changedStatuses(statuses, n.statuses()), "%s reports the same", next.name)
			}
		})
	}
}

// Static pods that this repository's kubelet has started are taken over by a real one of
// the same version.
func TestIntegrationStaticPodsAreGivenToAKubelet(t *testing.T) {
	for _, real := range kubelets(t) {
		if !strings.HasPrefix(real.name, "v1.37.") {
			continue // it gives other UIDs to static pods, as it does those of a kubelet of 1.37
		}
		t.Run(real.name, func(t *testing.T) {
			n := newNode(t)
			names := n.writeCorpus()
			n.start(kubeparts(t))
			n.untilSettled(names...)
			before, mounts := n.instances(), n.mounts()
			statuses := n.statuses()
			n.stop()
			n.start(real)
			n.untilSettled(names...)
			n.passSyncs()
			require.Empty(t, changed(before, n.instances()))
			assert.Equal(t, mounts, n.mounts())
			assert.Empty(t, changedStatuses(statuses, n.statuses()))
		})
	}
}

// mounts are the mounts of volumes, with their IDs.
func (n *node) mounts() (found []string) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(n.t, err)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if strings.HasPrefix(fields[4], filepath.Join(n.dir, "root", "pods")) {
			found = append(found, fields[0]+" "+fields[4])
		}
	}
	return found
}

// A status is what of a container's must not change.
type status struct {
	Phase                          v1.PodPhase
	Restarts                       int32
	ID, Image, ImageID, LastID     string
	Running                        bool
	Exit, LastExit                 int32
	Reason, Message, LastReason    string
	PodIP, QOS                     string
	Started, Finished, PodStarted  string
	UID, ConfigHash, ContainerKind string
}

// changedStatuses returns a line for each container with another status. Without an API
// server a kubelet has no address for pods that terminated before it started, and none for
// pods in the host's network; the hash of a pod whose manifest has a UID is that UID, or one
// of the content.
func changedStatuses(before, after map[string]status) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		b, a := before[name], after[name]
		if b.Phase != v1.PodRunning || strings.HasPrefix(name, "hostnetwork/") {
			b.PodIP, a.PodIP = "", ""
		}
		if strings.HasPrefix(name, "withuid/") {
			b.ConfigHash, a.ConfigHash = "", ""
		}
		if a != b {
			lines = append(lines, fmt.Sprintf("%s: %+v, was %+v", name, a, b))
		}
	}
	return lines
}

// statuses returns the statuses of all containers, by pod and name.
func (n *node) statuses() map[string]status {
	n.t.Helper()
	found := map[string]status{}
	for name, pod := range n.mustPods() {
		for kind, all := range map[string][]v1.ContainerStatus{"init": pod.Status.InitContainerStatuses, "app": pod.Status.ContainerStatuses} {
			for _, c := range all {
				s := status{
					Phase: pod.Status.Phase, Restarts: c.RestartCount, ID: c.ContainerID, Image: c.Image, ImageID: c.ImageID, Running: c.State.Running != nil,
					PodIP: pod.Status.PodIP, QOS: string(pod.Status.QOSClass), UID: string(pod.UID), ContainerKind: kind,
				}
				if pod.Spec.RestartPolicy != v1.RestartPolicyNever {
					s.ConfigHash = pod.Annotations["kubernetes.io/config.hash"]
				}
				if e := c.State.Terminated; e != nil {
					s.Exit, s.Reason, s.Message, s.Started, s.Finished = e.ExitCode, e.Reason, e.Message, e.StartedAt.String(), e.FinishedAt.String()
				}
				if e := c.LastTerminationState.Terminated; e != nil {
					s.LastExit, s.LastReason, s.LastID = e.ExitCode, e.Reason, e.ContainerID
				}
				found[name+"/"+c.Name] = s
			}
		}
	}
	return found
}
