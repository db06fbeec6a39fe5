package cri_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kubeparts/kubeparts/runtime/cri"
)

// The directories of a removed pod are removed without anything that is mounted
// below them, also not by another program.
func TestMountsBelowAPodsDirectoriesAreNotRemoved(t *testing.T) {
	f := newFake()
	dir := t.TempDir()
	rt, err := cri.New(cri.Config{Name: "fake", Runtime: f, Images: f, Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs"}})
	require.NoError(t, err)
	canary := filepath.Join(t.TempDir(), "0000beef") // a name that a message file could have
	require.NoError(t, os.WriteFile(canary, []byte("x"), 0o600))
	messages, logs := dir+"/root/pods/u-1/containers", dir+"/logs/prod_web_u-1"
	for _, path := range []string{messages + "/web/00000000", dir + "/root/pods/u-1/etc-hosts", logs + "/web/0.log"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	for _, target := range []string{messages + "/bound", logs + "/bound"} {
		require.NoError(t, os.Mkdir(target, 0o755))
		if err := unix.Mount(filepath.Dir(canary), target, "", unix.MS_BIND, ""); err != nil {
			t.Skipf("bind mounts need privileges: %v", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
	}
	require.ErrorContains(t, rt.CollectGarbage(t.Context(), removed("u-1")), "something is mounted there")
	assert.FileExists(t, canary)
	assert.NoFileExists(t, messages+"/web/00000000", "a file of this package")

	require.NoError(t, unix.Unmount(messages+"/bound", 0))
	require.NoError(t, unix.Unmount(logs+"/bound", 0))
	require.NoError(t, rt.CollectGarbage(t.Context(), removed("u-1")))
	assert.NoDirExists(t, dir+"/root/pods/u-1")
	assert.NoDirExists(t, logs)
	assert.FileExists(t, canary)
}
