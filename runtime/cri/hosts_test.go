package cri

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

func TestThePodsHostsFile(t *testing.T) { // pe-14, pe-17
	r := &Runtime{cfg: Config{RootDir: t.TempDir()}}
	pod := &v1.Pod{}
	pod.Name, pod.Namespace, pod.UID = "web", "ns", "u1"
	path, err := r.writeHosts(pod, []string{"10.0.0.7"})
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(r.cfg.RootDir, "pods", "u1", "etc-hosts"), path)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(text), "10.0.0.7\tweb\n")

	// The containers that have it keep it as it is while another one starts.
	then := time.Now().Add(-time.Hour).Truncate(time.Second)
	require.NoError(t, os.Chtimes(path, then, then))
	_, err = r.writeHosts(pod, []string{"10.0.0.7"})
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.True(t, info.ModTime().Equal(then), "it was written again")

	// It is put right for each container, whatever became of it.
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	require.NoError(t, os.Chmod(path, 0o600))
	_, err = r.writeHosts(pod, []string{"10.0.0.8"})
	require.NoError(t, err)
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(text), "10.0.0.8\tweb\n")
	assert.NotContains(t, string(text), "10.0.0.7")
	if goruntime.GOOS != "windows" {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o644), info.Mode().Perm())
	}

	pod.Spec.HostNetwork = true
	_, err = r.writeHosts(pod, nil)
	require.NoError(t, err)
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(text), "# Kubernetes-managed hosts file (host network).\n")
}

func TestTheFileForATerminationMessage(t *testing.T) { // pe-20
	s := &step{r: &Runtime{cfg: Config{RootDir: t.TempDir()}}, pod: &v1.Pod{}}
	s.pod.UID = "u1"
	one, err := s.messageFile(&v1.Container{Name: "a"}, 0)
	require.NoError(t, err)
	two, err := s.messageFile(&v1.Container{Name: "a"}, 1)
	require.NoError(t, err)
	assert.NotEqual(t, one, two, "each instance has its own")
	assert.Equal(t, filepath.Join(s.r.cfg.RootDir, "pods", "u1", "containers", "a"), filepath.Dir(one))
	assert.Regexp(t, "^[0-9a-f]{8}$", filepath.Base(one))
	info, err := os.Stat(one)
	require.NoError(t, err)
	assert.Zero(t, info.Size())
	if goruntime.GOOS != "windows" {
		assert.Equal(t, os.FileMode(0o666), info.Mode().Perm())
	}
}
