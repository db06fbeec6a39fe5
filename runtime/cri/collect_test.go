package cri_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
)

func removed(uids ...types.UID) runtime.GCPolicy {
	return runtime.GCPolicy{Keep: func(uid types.UID) bool {
		for _, u := range uids {
			if u == uid {
				return false
			}
		}
		return true
	}}
}

// kills returns the calls that stop or remove something.
func kills(calls []string) []string {
	var out []string
	for _, c := range calls {
		if strings.HasPrefix(c, "Stop") || strings.HasPrefix(c, "Remove") {
			out = append(out, c)
		}
	}
	return out
}

func TestCollectGarbage(t *testing.T) {
	for _, tc := range []struct {
		name   string
		world  func(*fakeCRI)
		policy runtime.GCPolicy
		want   []string
		err    string
	}{
		{"rt-131 an unknown container is stopped first", func(f *fakeCRI) {
			f.holds("a", "s1", 0, 0, "web/0 unknown", "log/0 exited")
		}, runtime.GCPolicy{}, []string{"StopContainer web", "RemoveContainer web", "RemoveContainer log"}, ""},
		{"rt-131 and kept if that fails", func(f *fakeCRI) {
			f.holds("a", "s1", 0, 0, "web/0 unknown", "log/0 exited")
			f.before = failing(1, "StopContainer", errors.New("shim is deaf"))
		}, runtime.GCPolicy{}, []string{"StopContainer web", "RemoveContainer log"}, "shim is deaf"},
		{"rt-133 a sandbox is stopped before it is removed", func(f *fakeCRI) {
			f.held("a", "s1", 0, 0)
			f.holds("a", "s2", 1, 1)
		}, runtime.GCPolicy{}, []string{"StopPodSandbox s1", "RemovePodSandbox s1"}, ""},
		{"rt-133 the newest sandbox of a live pod is kept", func(f *fakeCRI) {
			f.held("a", "s1", 0, 0)
			f.held("b", "s2", 0, 0)
		}, removed("b"), []string{"StopPodSandbox s2", "RemovePodSandbox s2"}, ""},
		{"rt-136 one error does not end the pass", func(f *fakeCRI) {
			f.held("a", "s1", 0, 0, "web/0 exited", "web/1 exited")
			f.held("b", "s2", 0, 0, "db/0 exited")
			f.before = func(op, name string) error {
				if op == "RemoveContainer" && name == "web" {
					return errors.New("web is busy")
				}
				if op == "RemovePodSandbox" {
					return errors.New("sandbox is busy")
				}
				return nil
			}
		}, removed("a", "b"), []string{
			"RemoveContainer web", "RemoveContainer db", "RemoveContainer web", "StopPodSandbox s2", "RemovePodSandbox s2",
		}, "web is busy\n.*web is busy\n.*sandbox is busy"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake()
			tc.world(f)
			rt, _ := f.engine(t, cri.Config{})
			err := rt.CollectGarbage(t.Context(), tc.policy)
			if tc.err == "" {
				require.NoError(t, err)
			} else {
				require.Error(t, err)
				assert.Regexp(t, tc.err, err.Error())
			}
			assert.Equal(t, tc.want, kills(f.did()))
		})
	}
}

// The container's resources are released first; then its log, the link to the log
// and the container are removed. A container whose log cannot be removed is kept:
// without it, the log would never be collected (rt-132).
func TestOrderOfAContainersRemoval(t *testing.T) {
	f := newFake()
	f.has("img:1")
	dir := t.TempDir()
	m := &managers{}
	rt, err := cri.New(cri.Config{
		Name: "fake", Runtime: f, Images: f, Providers: cri.Providers{Managers: m},
		Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs", ContainerLogs: dir + "/links"},
	})
	require.NoError(t, err)
	logs := dir + "/logs/prod_web_u-1/web"
	write := func(names ...string) {
		require.NoError(t, os.MkdirAll(logs, 0o755))
		for _, name := range names {
			require.NoError(t, os.WriteFile(filepath.Join(logs, name), nil, 0o644))
		}
	}
	f.observe = func(c fakecri.Change) {
		if c.To == fakecri.Running {
			write("0.log", "0.log.20260101-000000", "0.log.20260102-000000.gz", "10.log")
		}
	}
	pod := podOf(container("web"))
	syncs(t, rt, pod)
	first := f.newest("web").ID
	link := dir + "/links/web_prod_web-" + first + ".log"
	_, err = os.Lstat(link)
	require.NoError(t, err)
	f.exits("web", 0)
	m.calls = nil
	f.before = func(op, _ string) error {
		if op != "RemoveContainer" {
			return nil
		}
		assert.Equal(t, []string{"stopped fake://" + first}, m.calls)
		left, err := os.ReadDir(logs)
		require.NoError(t, err)
		require.Len(t, left, 1)
		assert.Equal(t, "10.log", left[0].Name(), "of another instance")
		_, err = os.Lstat(link)
		assert.True(t, os.IsNotExist(err), "the link")
		return nil
	}
	require.NoError(t, rt.CollectGarbage(t.Context(), runtime.GCPolicy{}))
	assert.Contains(t, f.did(), "RemoveContainer web")
	assert.Empty(t, f.containers())

	syncs(t, rt, pod)
	f.exits("web", 0)
	require.NoError(t, os.MkdirAll(logs+"/1.log.d/full", 0o755)) // can't be removed as a file
	require.Error(t, rt.CollectGarbage(t.Context(), runtime.GCPolicy{}))
	assert.Len(t, f.containers(), 1, "its log could not be removed")
	require.NoError(t, os.RemoveAll(logs+"/1.log.d"))
	f.before = nil
	require.NoError(t, rt.CollectGarbage(t.Context(), runtime.GCPolicy{}))
	assert.Empty(t, f.containers())
}

// The log directories of removed pods are removed, also those of an older layout; other
// directories are kept (rt-134).
func TestLogDirectoriesOfRemovedPodsAreRemoved(t *testing.T) {
	f := newFake()
	w := &twister{fakeCRI: f}
	rt, _, dir := w.over(t)
	f.holds("held", "s1", 0, 0, "web/0")
	for _, name := range []string{"ns_web_gone", "ns_a_b_gone", "gone", "ns_web_lives", "lives", "ns_web_held", "held", "ns_web_"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "logs", name, "web"), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "logs", "ns_file_gone"), nil, 0o644))
	require.NoError(t, rt.CollectGarbage(t.Context(), removed("gone", "held", "")))
	entries, err := os.ReadDir(filepath.Join(dir, "logs"))
	require.NoError(t, err)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	assert.Equal(t, []string{"held", "lives", "ns_file_gone", "ns_web_", "ns_web_held", "ns_web_lives"}, left)
}

// The checkpoint of a pod is removed with the pod, and not before (rt-137).
func TestCheckpointsAreRemovedWithTheirPods(t *testing.T) {
	f := newFake()
	f.has("img:1")
	w := &twister{fakeCRI: f}
	rt, _, dir := w.over(t)
	pod, other := podOf(container("web")), podOf(container("web"))
	other.UID = "u-2"
	for _, p := range []*v1.Pod{pod, other} {
		syncs(t, rt, p)
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: p.UID, Pod: p}))
	}
	record := func(uid string) string { return filepath.Join(dir, "root", "pods", uid, "runtime.json") }
	require.NoError(t, rt.CollectGarbage(t.Context(), removed()))
	assert.FileExists(t, record("u-1"))
	require.NoError(t, rt.CollectGarbage(t.Context(), removed("u-1")))
	assert.NoFileExists(t, record("u-1"))
	assert.FileExists(t, record("u-2"))
	syncs(t, rt, pod)
	assert.Zero(t, f.newest("web").Config.Metadata.Attempt, "the restart count is not cached either")
}
