package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// A pod with volumes of all kinds that need no cluster, on plain processes by
// the user of the test, and in containers.
func TestVolumesOverRestartsOverProcesses(t *testing.T) {
	t.Parallel()
	volumesCome(t, onProcesses(t))
}

func TestIntegrationVolumesOverRestartsOverContainerd(t *testing.T) {
	t.Parallel()
	volumesCome(t, onContainerd(t))
}

const volumesSpec = `volumes: [
    {name: empty, emptyDir: {}}, {name: memory, emptyDir: {medium: Memory, sizeLimit: 1Mi}},
    {name: conf, configMap: {name: conf}}, {name: sec, secret: {secretName: sec}},
    {name: down, downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}},
    {name: all, projected: {sources: [{configMap: {name: conf}}, {secret: {name: sec}}]}},
    {name: host, hostPath: {path: WORLD/host, type: DirectoryOrCreate}}]`

const volumeMounts = `volumeMounts: [{name: empty, mountPath: /empty}, {name: memory, mountPath: /memory}, {name: conf, mountPath: /conf},
    {name: sec, mountPath: /sec}, {name: down, mountPath: /down}, {name: all, mountPath: /all}, {name: host, mountPath: /host},
    {name: empty, mountPath: /sub, subPath: a/b}]`

func volumesCome(t *testing.T, w *world) {
	objects := filepath.Join(w.dir, "objects")
	color := filepath.Join(objects, "configmaps", "default", "conf", "color")
	set := func(path, value string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path+".tmp", []byte(value), 0o644))
		require.NoError(t, os.Rename(path+".tmp", path))
	}
	set(color, "blue")
	set(filepath.Join(objects, "secrets", "default", "sec", "password"), "sesame")
	w.put("volumes", manifest("volumes", volumesSpec, containers(container("main", untilTerm, volumeMounts))))
	w.start("--objects=" + objects)
	var pod v1.Pod
	w.until("the pod runs", func() error {
		if pod = w.pods()["volumes"]; !runs(pod) {
			return fmt.Errorf("%s: %+v", pod.Status.Phase, pod.Status.ContainerStatuses)
		}
		return nil
	})
	dir := filepath.Join(w.dir, "root", "pods", string(pod.UID))
	reads := func(path, want string) {
		w.until(path+" says "+want, func() error {
			got, err := os.ReadFile(filepath.Join(dir, "volumes", path))
			if string(got) != want {
				return fmt.Errorf("it says %q (%v)", got, err)
			}
			return nil
		})
	}
	reads("kubernetes.io~configmap/conf/color", "blue")
	reads("kubernetes.io~secret/sec/password", "sesame")
	reads("kubernetes.io~downward-api/down/name", "volumes-node")
	reads("kubernetes.io~projected/all/color", "blue")
	require.DirExists(t, filepath.Join(dir, "volumes/kubernetes.io~empty-dir/empty/a/b"))

	// What changes is pushed, also after the agent was killed meanwhile.
	set(color, "green")
	reads("kubernetes.io~configmap/conf/color", "green")
	w.kill()
	set(color, "red")
	w.start("--objects=" + objects)
	reads("kubernetes.io~projected/all/color", "red")

	// The pod goes while no agent is there; the next one leaves nothing.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "volumes/kubernetes.io~empty-dir/empty/a/b/data"), nil, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "host", "kept"), nil, 0o644))
	w.kill()
	w.take("volumes")
	w.start("--objects=" + objects)
	w.until("the pod's directory is gone", func() error {
		mounts, err := os.ReadFile("/proc/mounts")
		require.NoError(t, err)
		if _, err := os.Stat(dir); !os.IsNotExist(err) || strings.Contains(string(mounts), dir) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	require.FileExists(t, filepath.Join(w.dir, "host", "kept"))
}
