package cri_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

func openLedger(t *testing.T, root string, f *fakeCRI) *cri.Ledger {
	t.Helper()
	cfg := cri.LedgerConfig{RootDir: root}
	if f != nil {
		cfg.Runtime = f
	}
	l, err := cri.OpenLedger(t.Context(), cfg)
	require.NoError(t, err)
	return l
}

// What belongs to a node is known from its root directory, and survives a restart.
func TestALedgerContainsThePodsOfItsRootDirectory(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "pods", "of-a-kubelet", "volumes"), 0o755))
	l := openLedger(t, root, nil)
	assert.True(t, l.Owns("of-a-kubelet"))
	assert.False(t, l.Owns("made"))
	require.NoError(t, l.Own("made"))
	require.NoError(t, l.Own("made"))
	for _, uid := range []types.UID{"", ".", "..", "../x", "a/b"} {
		require.Error(t, l.Own(uid), "%q", uid)
	}
	require.NoError(t, os.RemoveAll(filepath.Join(root, "pods")))
	l = openLedger(t, root, nil)
	assert.True(t, l.Owns("of-a-kubelet"))
	assert.True(t, l.Owns("made"))
	assert.False(t, openLedger(t, t.TempDir(), nil).Owns("made"), "of another node")

	_, err := cri.OpenLedger(t.Context(), cri.LedgerConfig{})
	require.EqualError(t, err, "cri: LedgerConfig.RootDir is empty")
	file := filepath.Join(root, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = cri.OpenLedger(t.Context(), cri.LedgerConfig{RootDir: file})
	require.Error(t, err)

	var none *cri.Ledger
	assert.True(t, none.Owns("any"))
	require.NoError(t, none.Own("any"))
	require.NoError(t, none.Retain(t.Context(), func(types.UID) bool { return false }))
}

// A pod whose directory was removed still mounts its files. The directories of all pods,
// which drivers mount, are no evidence.
func TestAContainerThatMountsFilesOfItsPodIsEvidence(t *testing.T) {
	root, f := t.TempDir(), newFake()
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(root, link))
	for uid, path := range map[string]string{
		"ours":    filepath.Join(root, "pods", "ours", "etc-hosts"),
		"linked":  filepath.Join(link, "pods", "linked", "etc-hosts"),
		"driver":  filepath.Join(root, "pods"),
		"other":   filepath.Join(root, "pods", "ours", "etc-hosts"),
		"foreign": "/var/lib/other/pods/foreign/etc-hosts",
	} {
		sandbox, containers := found(uid, "s-"+uid, 0, 0, "c/0 running")
		containers[0].Mounts = []*runtimeapi.Mount{{ContainerPath: "/etc/hosts", HostPath: path}}
		f.put(sandbox, containers...)
	}
	l := openLedger(t, link, f)
	for uid, want := range map[types.UID]bool{"ours": true, "linked": true, "driver": false, "other": false, "foreign": false} {
		assert.Equal(t, want, l.Owns(uid), uid)
	}
	exclusive, err := cri.OpenLedger(t.Context(), cri.LedgerConfig{RootDir: t.TempDir(), Runtime: f, Exclusive: true})
	require.NoError(t, err)
	assert.True(t, exclusive.Owns("foreign"))
}

// A pod is forgotten when two collections in a row have found nothing of it, except if it
// is added meanwhile.
func TestALedgerForgetsPodsThatAreGone(t *testing.T) {
	root := t.TempDir()
	l := openLedger(t, root, nil)
	for _, uid := range []types.UID{"a", "b", "c"} {
		require.NoError(t, l.Own(uid))
	}
	keep := func(uid types.UID) bool { return uid == "b" }
	require.NoError(t, l.Retain(t.Context(), keep))
	assert.True(t, l.Owns("a"))
	require.NoError(t, l.Own("c"), "it is added again")
	require.NoError(t, l.Retain(t.Context(), keep))
	assert.False(t, l.Owns("a"))
	assert.True(t, l.Owns("b"))
	assert.True(t, l.Owns("c"))
	require.NoError(t, l.Retain(t.Context(), func(uid types.UID) bool {
		require.NoError(t, l.Own(uid), "at this moment")
		return false
	}))
	assert.True(t, l.Owns("c"))
	entries, err := os.ReadDir(filepath.Join(root, "owned_pods"))
	require.NoError(t, err)
	assert.Len(t, entries, 2)
}

// A node that shares its runtime and its directory of logs with another one removed the
// other's containers and logs, because no source of its own specified them.
func TestNothingOfAnotherNodeIsRemoved(t *testing.T) {
	f := newFake()
	f.holds("their-1", "s1", 0, 0, "c1/0 running")
	f.held("their-2", "s2", 0, 0, "c2/0 exited")
	f.held("our-2", "s3", 0, 0, "c3/0 exited")
	var out bytes.Buffer
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "root", "pods", "our-2"), 0o755))
	l := openLedger(t, filepath.Join(dir, "root"), f)
	rt, err := cri.New(cri.Config{
		Name: "fake", Runtime: f, Images: f, Providers: cri.Providers{Ledger: l}, Logger: slog.New(slog.NewTextHandler(&out, nil)),
		Dirs: cri.Dirs{Root: filepath.Join(dir, "root"), PodLogs: filepath.Join(dir, "logs"), ContainerLogs: filepath.Join(dir, "links")},
	})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "links"), 0o755))
	links := map[string]string{
		"ours.log": filepath.Join(dir, "logs", "ns_p_our-2", "c", "0.log"), "theirs.log": filepath.Join(dir, "logs", "ns_p_their-3", "c", "0.log"),
		"elsewhere.log": "/var/other/ns_p_our-2/c/0.log",
	}
	for name, log := range links {
		require.NoError(t, os.Symlink(log, filepath.Join(dir, "links", name)))
	}
	for _, uid := range []string{"their-1", "their-2", "their-3", "our-2"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "logs", "ns_p_"+uid, "c"), 0o755))
	}

	foreign, err := rt.Foreign(t.Context())
	require.NoError(t, err)
	require.Len(t, foreign, 1, "one runs")
	assert.EqualValues(t, "their-1", foreign[0].UID)
	none := func(types.UID) bool { return false }
	for range 2 {
		pods, err := rt.Pods(t.Context())
		require.NoError(t, err)
		for _, p := range pods {
			assert.EqualValues(t, "our-2", p.UID)
		}
		require.NoError(t, rt.CollectGarbage(t.Context(), runtime.GCPolicy{Keep: none}))
	}
	var left []string
	for _, c := range f.mem.Containers("") {
		left = append(left, c.ID)
	}
	assert.ElementsMatch(t, []string{"s1-c1/0", "s2-c2/0"}, left)
	for name, want := range map[string]bool{
		"logs/ns_p_their-1": true, "logs/ns_p_their-2": true, "logs/ns_p_their-3": true, "logs/ns_p_our-2": false,
		"links/theirs.log": true, "links/elsewhere.log": true, "links/ours.log": false,
	} {
		_, err := os.Lstat(filepath.Join(dir, name))
		assert.Equal(t, want, err == nil, name)
	}
	assert.Equal(t, 1, strings.Count(out.String(), "podUID=their-1"), "%s", out.String())
	stats, err := rt.PodStats(t.Context())
	require.NoError(t, err)
	assert.Empty(t, stats)
	uses, err := rt.ImageUses(t.Context())
	require.NoError(t, err)
	assert.Len(t, uses, 2, "their images are used")
}
