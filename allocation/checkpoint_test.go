package allocation_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/runtime"
)

func TestCheckpointsOutliveTheAgent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "for it")
	d := newDesk(t, allocation.Config{Dir: dir})
	d.room = 3
	first := podOf("u-1", "sidecar s: cpu=1", "a: cpu=2/2", "pod: cpu=3/3")
	first.Spec.Overhead = res("cpu=250m").Requests
	require.Nil(t, d.Admit(t.Context(), first))
	assert.Equal(t, []string{"u-1.json"}, files(t, dir), "al-4")
	refused := d.Admit(t.Context(), podOf("u-2", "a: cpu=2"))
	require.Equal(t, &runtime.Rejection{Reason: "OutOfcpu", Message: "no room"}, refused)
	assert.Equal(t, []string{"u-1.json"}, files(t, dir), "a rejected pod has no allocation")

	d.open(t)
	require.NotNil(t, d.Admit(t.Context(), podOf("u-2", "a: cpu=2")), "its room is taken before a source has added it")
	require.Len(t, d.others, 1)
	reported := d.others[0]
	assert.Equal(t, "ns/u-1", reported.Namespace+"/"+reported.Name)
	assert.True(t, same(res("cpu=1"), reported.Spec.InitContainers[0].Resources))
	assert.Equal(t, first.Spec.Overhead, reported.Spec.Overhead)
	assert.NotNil(t, reported.Spec.Resources)

	d.asked = nil
	resized := first.DeepCopy()
	resized.Spec.Containers[0].Resources = res("cpu=9/9")
	require.Nil(t, d.Admit(t.Context(), resized))
	assert.Equal(t, []string{"add u-1 2"}, d.asked, "al-3: with its allocation")
	assert.Equal(t, "2", cpus(d.Allocate(t.Context(), resized, nil)), "al-3: and not its requests")
	assert.Equal(t, []string{"PodResizePending=True Deferred no room @1"}, conditions(d, "u-1"))

	d.Release("u-1")
	assert.Empty(t, files(t, dir))
	assert.Zero(t, d.ResizeState("u-1"))
	require.Nil(t, d.Admit(t.Context(), podOf("u-2", "a: cpu=2")))
}

func TestACheckpointIsWrittenOnlyWhenItChanges(t *testing.T) { // al-5
	dir := t.TempDir()
	d := newDesk(t, allocation.Config{Dir: dir})
	pod := d.runningAt(t, "u", "cpu=1")
	path := filepath.Join(dir, "u.json")
	old := time.Now().Add(-time.Hour)
	untouched := func() bool {
		info, err := os.Stat(path)
		require.NoError(t, err)
		return info.ModTime().Before(time.Now().Add(-time.Minute))
	}
	require.NoError(t, os.Chtimes(path, old, old))
	require.Nil(t, d.Admit(t.Context(), pod))
	d.Allocate(t.Context(), pod.DeepCopy(), runs("a: cpu=1"))
	d.open(t)
	d.Allocate(t.Context(), pod, runs("a: cpu=1"))
	assert.True(t, untouched())
	d.room = 0
	d.Allocate(t.Context(), wants(pod, "cpu=2"), runs("a: cpu=1"))
	assert.False(t, untouched(), "it is synced to the disk before the spec differs from it")
	require.NoError(t, os.Chtimes(path, old, old))
	d.Allocate(t.Context(), wants(pod, "cpu=3"), runs("a: cpu=1"))
	assert.True(t, untouched())
	d.room = -1
	d.Retry(t.Context(), "periodic_retry")
	assert.False(t, untouched())
}

func TestABrokenCheckpointAffectsOnePod(t *testing.T) { // al-5
	dir := t.TempDir()
	d := newDesk(t, allocation.Config{Dir: dir})
	d.runningAt(t, "good", "cpu=1")
	bad := d.runningAt(t, "bad", "cpu=1")
	whole, err := os.ReadFile(filepath.Join(dir, "good.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bad.json"), whole[:len(whole)/2], 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "stolen.json"), whole, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "half.json.tmp"), whole[:9], 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "README"), nil, 0o600))

	var logged strings.Builder
	d.cfg.Logger = logTo(&logged)
	d.open(t)
	assert.Contains(t, logged.String(), "bad.json")
	assert.Contains(t, logged.String(), "stolen.json: file name does not match pod UID")
	assert.Contains(t, logged.String(), "delete the file, or drain the node")
	assert.Equal(t, 2, strings.Count(logged.String(), "level=ERROR"))
	assert.Equal(t, "1", cpus(d.Allocated(wants(podOf("good", "a: cpu=1"), "cpu=5"))))
	assert.Equal(t, "5", cpus(d.Allocated(wants(bad, "cpu=5"))), "not known any more")

	assert.NoFileExists(t, filepath.Join(dir, "half.json.tmp"))

	d.Allocate(t.Context(), bad, nil)
	logged.Reset()
	_ = d.Retain(t.Context(), func(uid types.UID) bool { return uid == "good" || uid == "bad" })
	assert.Equal(t, []string{"README", "bad.json", "good.json"}, files(t, dir), "of desired pods only")
	d.open(t)
	assert.Empty(t, logged.String(), "the broken one was replaced")

	_, err = allocation.Open(allocation.Config{Dir: filepath.Join(dir, "README")})
	require.ErrorContains(t, err, "README")
	_, err = allocation.Open(allocation.Config{Period: -1})
	require.ErrorContains(t, err, "Period")
}

func TestAFailedWriteIsOnlyLogged(t *testing.T) { // al-4
	dir := filepath.Join(t.TempDir(), "records")
	var logged strings.Builder
	d := newDesk(t, allocation.Config{Dir: dir, Logger: logTo(&logged)})
	require.NoError(t, os.RemoveAll(dir))
	pod := d.runningAt(t, "u", "cpu=1")
	assert.Contains(t, logged.String(), "Failed to write allocation checkpoint")
	assert.Contains(t, logged.String(), "u.json")
	more := wants(pod, "cpu=2")
	assert.Same(t, more, d.Allocate(t.Context(), more, nil))
}

func TestAnyUIDHasACheckpoint(t *testing.T) {
	dir := t.TempDir()
	d := newDesk(t, allocation.Config{Dir: dir})
	for _, uid := range []types.UID{"../../etc/passwd", "", ".", "a/b", types.UID(strings.Repeat("x", 300)), `c:\d`} {
		require.Nil(t, d.Admit(t.Context(), podOf(uid, "a: cpu=1")))
		d.open(t)
		assert.Equal(t, "1", cpus(d.Allocated(podOf(uid, "a: cpu=7"))), "%q", uid)
	}
	assert.Len(t, files(t, dir), 6)
	_ = d.Retain(t.Context(), func(types.UID) bool { return false })
	assert.Empty(t, files(t, dir))
}

func TestPruneKeepsDesiredPods(t *testing.T) {
	d := newDesk(t, allocation.Config{Dir: t.TempDir()})
	d.runningAt(t, "kept", "cpu=1")
	d.runningAt(t, "gone", "cpu=1")
	d.open(t)
	_ = d.Retain(t.Context(), func(uid types.UID) bool { return uid == "kept" })
	assert.Equal(t, []string{"kept.json"}, files(t, d.cfg.Dir))
	require.NoError(t, os.WriteFile(filepath.Join(d.cfg.Dir, "kept.json"), nil, 0o600))
	d.open(t)
	_ = d.Retain(t.Context(), func(uid types.UID) bool { return uid == "kept" })
	assert.Equal(t, []string{"kept.json"}, files(t, d.cfg.Dir), "broken, and desired")
}
