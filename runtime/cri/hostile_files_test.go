package cri_test

import (
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
)

// Paths come from the runtime. Reading the files of logs and messages must neither block
// nor use unbounded memory, and they are removed only from the pod's own directories.
func TestPathsOfTheRuntimeAreNotTrusted(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("paths of a Linux node")
	}
	f := newFake()
	f.has("img:1")
	w := &twister{fakeCRI: f}
	rt, _, dir := w.over(t)
	web := container("web")
	web.TerminationMessagePath, web.TerminationMessagePolicy = "/dev/termination-log", v1.TerminationMessageFallbackToLogsOnError
	pod := podOf(web)
	pod.Spec.RestartPolicy = v1.RestartPolicyNever
	syncs(t, rt, pod)
	f.exits("web", 1)

	outside := t.TempDir()
	file := func(path string) string {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("2026-01-01T00:00:00Z stdout F not yours\n"), 0o644))
		return path
	}
	huge := filepath.Join(outside, "huge.log")
	require.NoError(t, os.WriteFile(huge, []byte("x"), 0o644))
	require.NoError(t, os.Truncate(huge, 1<<40)) // sparse
	notOurs := []string{
		file(outside + "/0.log"), file(dir + "/logs/prod_other_u-2/web/0.log"), file(dir + "/logs/0.log"), file(dir + "/logs-else"),
		file(dir + "/root/pods/u-2/containers/web/1234"), file(dir + "/root/pods/u-1/volumes/data/file"), huge,
	}
	fifo := cri.Mkfifo(t, outside)
	paths := append([]string{
		outside, fifo, dir + "/logs", dir + "/logs/", dir + "/logs/prod_web_u-1", dir + "/logs/prod_web_u-1/../prod_other_u-2/web/0.log",
		"", "/", "relative/0.log", "/dev/zero", "/proc/self/mem", dir + "/none/0.log",
	}, notOurs...)
	for _, path := range paths {
		w.containerStatus = func(r *runtimeapi.ContainerStatusResponse) *runtimeapi.ContainerStatusResponse {
			r.Status.LogPath = path
			r.Status.Mounts = []*runtimeapi.Mount{nil, {ContainerPath: "/dev/termination-log", HostPath: path}, {}}
			return r
		}
		st, err := rt.PodStatus(t.Context(), pod.UID)
		require.NoError(t, err, path)
		require.Len(t, st.Containers, 1)
		assert.LessOrEqual(t, len(st.Containers[0].Message), 4096, path)
		w.before = failing(1, "RemoveContainer", errors.New("keep the container for the next path"))
		assert.Error(t, rt.CollectGarbage(t.Context(), runtime.GCPolicy{Keep: func(uid types.UID) bool { return uid != pod.UID }}), path)
	}
	for _, path := range append(notOurs, fifo) {
		_, err := os.Lstat(path)
		assert.NoError(t, err, "outside of the container's directory")
	}
}

// IDs come from the runtime as well, and are part of the names of links to logs.
func TestAnIDWithPathElements(t *testing.T) {
	f := newFake()
	f.has("img:1")
	w := &twister{fakeCRI: f}
	rt, _, dir := w.over(t)
	pod := podOf(container("web"))
	log := filepath.Join(dir, "logs", "prod_web_u-1", "web", "0.log")
	w.observe = func(c fakecri.Change) {
		if c.To == fakecri.Running {
			assert.NoError(t, os.WriteFile(log, nil, 0o644))
		}
	}
	const id = "x://../../victim"
	w.made = func(made string) string {
		if c := f.newest("web"); c != nil && c.ID == made {
			f.alter(c, func(s *runtimeapi.ContainerStatus) { s.Id = id })
			return id
		}
		return made
	}
	victim := filepath.Join(dir, "victim.log")
	require.NoError(t, os.WriteFile(victim, nil, 0o644))
	syncs(t, rt, pod)
	st, err := rt.PodStatus(t.Context(), pod.UID)
	require.NoError(t, err)
	assert.Equal(t, "fake://"+id, st.Container("web").ID)
	links, err := os.ReadDir(filepath.Join(dir, "links"))
	require.NoError(t, err)
	require.Len(t, links, 1)
	require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID}))
	assert.Empty(t, f.running())
	require.NoError(t, rt.CollectGarbage(t.Context(), runtime.GCPolicy{Keep: func(types.UID) bool { return false }}))
	assert.Empty(t, f.containers())
	links, err = os.ReadDir(filepath.Join(dir, "links"))
	require.NoError(t, err)
	assert.Empty(t, links)
	assert.FileExists(t, victim)
}
