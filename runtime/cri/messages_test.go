package cri_test

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

func TestStartsThatFailDontPileUpMessageFiles(t *testing.T) { // rt-124
	f := newFake()
	f.has("img:1")
	dir := t.TempDir()
	rt, err := cri.New(cri.Config{
		Name: "fake", Runtime: f, Images: f, Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs"},
	})
	require.NoError(t, err)
	web := container("web")
	web.TerminationMessagePath = "/dev/termination-log"
	pod := podOf(web)
	files := func() int {
		t.Helper()
		entries, err := os.ReadDir(dir + "/root/pods/" + string(pod.UID) + "/containers/web")
		require.NoError(t, err)
		return len(entries)
	}
	f.before = failing(5, "CreateContainer", errors.New("no"))
	for range 5 {
		_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.Error(t, err)
		assert.Equal(t, 1, files())
	}
	syncs(t, rt, pod)
	f.exits("web", 1)
	syncs(t, rt, pod)
	assert.Equal(t, 2, files(), "each instance has its own")
}
