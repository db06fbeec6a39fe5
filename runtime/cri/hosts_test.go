package cri

import (
	"bytes"
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
	r := &Runtime{cfg: Config{Dirs: Dirs{Root: t.TempDir()}}}
	pod := &v1.Pod{}
	pod.Name, pod.Namespace, pod.UID = "web", "ns", "u1"
	path, err := r.writeHosts(pod, []string{"10.0.0.7"})
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(r.cfg.Dirs.Root, "pods", "u1", "etc-hosts"), path)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(text), "10.0.0.7\tweb\n")

	// The file is not rewritten when another container starts.
	then := time.Now().Add(-time.Hour).Truncate(time.Second)
	require.NoError(t, os.Chtimes(path, then, then))
	_, err = r.writeHosts(pod, []string{"10.0.0.7"})
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.True(t, info.ModTime().Equal(then), "it was written again")

	// The file is rewritten before each start if it was changed.
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

// Containers can write the file: its size must not reach the agent's memory, and
// whatever stands in its place must not block a start.
func TestTheHostsFileIsRewrittenAfterAContainerChangedIt(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("truncating allocates the space there")
	}
	r := &Runtime{cfg: Config{Dirs: Dirs{Root: t.TempDir()}}}
	pod := &v1.Pod{}
	pod.Name, pod.UID = "web", "u1"
	path, err := r.writeHosts(pod, []string{"10.0.0.7"})
	require.NoError(t, err)
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	outside := filepath.Join(t.TempDir(), "outside")
	for name, spoil := range map[string]func(t *testing.T){
		"8 TiB":              func(t *testing.T) { require.NoError(t, os.Truncate(path, 8<<40)) },
		"10 GiB":             func(t *testing.T) { require.NoError(t, os.Truncate(path, 10<<30)) },
		"one byte more":      func(t *testing.T) { require.NoError(t, os.WriteFile(path, append(want, '#'), 0o644)) },
		"other content":      func(t *testing.T) { require.NoError(t, os.WriteFile(path, bytes.ToUpper(want), 0o644)) },
		"empty":              func(t *testing.T) { require.NoError(t, os.Truncate(path, 0)) },
		"removed":            func(t *testing.T) { require.NoError(t, os.Remove(path)) },
		"an empty directory": func(t *testing.T) { require.NoError(t, os.Remove(path)); require.NoError(t, os.Mkdir(path, 0o755)) },
		"a link": func(t *testing.T) {
			require.NoError(t, os.WriteFile(outside, []byte("untouched"), 0o600))
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Symlink(outside, path))
		},
		"a FIFO": func(t *testing.T) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Rename(Mkfifo(t, t.TempDir()), path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			spoil(t)
			var before, after goruntime.MemStats
			goruntime.ReadMemStats(&before)
			_, err := r.writeHosts(pod, []string{"10.0.0.7"})
			goruntime.ReadMemStats(&after)
			require.NoError(t, err)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), "bytes allocated")
			info, err := os.Lstat(path)
			require.NoError(t, err)
			require.True(t, info.Mode().IsRegular())
			require.EqualValues(t, len(want), info.Size())
			is, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, string(want), string(is))
		})
	}
	untouched, err := os.ReadFile(outside)
	require.NoError(t, err)
	assert.Equal(t, "untouched", string(untouched))
}

// Whatever a container writes to the file, the next start gets the right one.
func FuzzHostsFile(f *testing.F) {
	f.Add([]byte(""))
	f.Add([]byte("# Kubernetes-managed hosts file.\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		r := &Runtime{cfg: Config{Dirs: Dirs{Root: t.TempDir()}}}
		pod := &v1.Pod{}
		pod.Name, pod.UID = "web", "u1"
		path, err := r.writeHosts(pod, []string{"10.0.0.7"})
		require.NoError(t, err)
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, content, 0o644))
		_, err = r.writeHosts(pod, []string{"10.0.0.7"})
		require.NoError(t, err)
		is, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(is))
	})
}

func TestTheFileForATerminationMessage(t *testing.T) { // pe-20
	s := &podSync{r: &Runtime{cfg: Config{Dirs: Dirs{Root: t.TempDir()}}}, pod: &v1.Pod{}}
	s.pod.UID = "u1"
	one, err := s.messageFile(&v1.Container{Name: "a"}, 0)
	require.NoError(t, err)
	two, err := s.messageFile(&v1.Container{Name: "a"}, 1)
	require.NoError(t, err)
	assert.NotEqual(t, one, two, "each instance has its own")
	assert.Equal(t, filepath.Join(s.r.cfg.Dirs.Root, "pods", "u1", "containers", "a"), filepath.Dir(one))
	assert.Regexp(t, "^[0-9a-f]{8}$", filepath.Base(one))
	info, err := os.Stat(one)
	require.NoError(t, err)
	assert.Zero(t, info.Size())
	if goruntime.GOOS != "windows" {
		assert.Equal(t, os.FileMode(0o666), info.Mode().Perm())
	}
}
