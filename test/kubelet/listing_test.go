package kubelet

import (
	"fmt"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// goldenManifest sets every field that affects labels and annotations.
const goldenManifest = `apiVersion: v1
kind: Pod
metadata: {name: golden, labels: {app: web}, annotations: {note: hello}}
spec:
  terminationGracePeriodSeconds: 7
  containers:
  - name: main
    image: kubeparts.test/busybox:1
    command: [sh, -c, "trap 'exit 0' TERM; sleep 3600 & wait"]
    terminationMessagePath: /dev/words
    ports: [{name: http, containerPort: 8080}]
    lifecycle: {preStop: {sleep: {seconds: 1}}}
`

// checkListing checks the exact labels and annotations of the pod in the runtime:
// tools depend on the kubelet's, and so does an agent that takes over from another.
func (w *world) checkListing(pod v1.Pod) {
	w.t.Helper()
	t, uid := w.t, string(pod.UID)
	mine := w.mustList().of(uid)
	require.Len(t, mine.sandboxes, 1)
	require.Len(t, mine.containers, 1)

	s := mine.sandboxes[0]
	require.True(t, s.Ready)
	require.Equal(t, "default/golden-node "+uid+" 0", fmt.Sprintf("%s/%s %s %d", s.Namespace, s.Name, s.UID, s.Attempt))
	require.Equal(t, map[string]string{
		"app":                         "web",
		"io.kubernetes.pod.name":      "golden-node",
		"io.kubernetes.pod.namespace": "default",
		"io.kubernetes.pod.uid":       uid,
	}, s.Labels)
	require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z?`, s.Annotations["kubernetes.io/config.seen"])
	delete(s.Annotations, "kubernetes.io/config.seen")
	require.Equal(t, map[string]string{
		"note":                        "hello",
		"kubernetes.io/config.source": "file",
		"kubernetes.io/config.hash":   uid,
	}, s.Annotations)

	c := mine.containers[0]
	require.Equal(t, "main 0", fmt.Sprintf("%s %d", c.Name, c.Attempt))
	require.Equal(t, s.ID, c.SandboxID)
	require.True(t, c.running)
	require.Equal(t, map[string]string{
		"io.kubernetes.pod.name":       "golden-node",
		"io.kubernetes.pod.namespace":  "default",
		"io.kubernetes.pod.uid":        uid,
		"io.kubernetes.container.name": "main",
	}, c.Labels)
	require.Equal(t, map[string]string{
		"io.kubernetes.container.hash":                     goldenHash,
		"io.kubernetes.container.restartCount":             "0",
		"io.kubernetes.container.terminationMessagePath":   "/dev/words",
		"io.kubernetes.container.terminationMessagePolicy": "File",
		"io.kubernetes.container.preStopHandler":           `{"sleep":{"seconds":1}}`,
		"io.kubernetes.container.ports":                    `[{"name":"http","containerPort":8080,"protocol":"TCP"}]`,
		"io.kubernetes.pod.terminationGracePeriod":         "7",
	}, c.Annotations)
	require.Equal(t, c.ID, bareID(statuses(pod)["main"].ContainerID))
}

// goldenHash is the hash that the kubelet computes for a container of that name and
// image. A change of it would restart every container of a node that is upgraded.
const goldenHash = "7db79101"
