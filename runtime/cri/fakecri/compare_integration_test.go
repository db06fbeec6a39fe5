package fakecri_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
)

// What the script says is what containerd does.
func TestIntegrationTheScriptSaysWhatContainerdAnswers(t *testing.T) {
	cgroup := fmt.Sprintf("kubeparts-calls-%d", os.Getpid())
	t.Cleanup(func() { removeCgroup(t, cgroup) }) // after the daemon's
	daemon := lab.Containerd(t, lab.ContainerdConfig{})
	registry := lab.NewRegistry(t)
	registry.PushBusybox("app:1")
	registry.PushBusybox("private:1", "bob")
	client, err := remote.Dial(t.Context(), daemon.Endpoint, remote.Config{Timeout: time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })

	script, rest := readScript(t)
	s := &subject{runtime: client.Runtime, images: client.Images, registry: registry.Host, password: lab.RegistryPassword, logs: t.TempDir(), cgroup: "/" + cgroup}
	played := s.play(t, script)
	if *update {
		writeScript(t, played, rest)
		return
	}
	diffs := differences(script, played)
	if strings.HasPrefix(daemon.Version, "1.6.") {
		diffs = unknownDifferences(t, diffs)
	}
	assert.Empty(t, diffs, strings.Join(diffs, "\n"))
	t.Logf("%d calls to containerd %s", len(played), daemon.Version)
}

func unknownDifferences(t *testing.T, diffs []string) []string { return diffs }

// removeCgroup removes what containerd leaves of a parent of pods, in all
// hierarchies.
func removeCgroup(t *testing.T, name string) {
	for _, pattern := range []string{"/sys/fs/cgroup/" + name, "/sys/fs/cgroup/*/" + name} {
		dirs, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, dir := range dirs {
			if err := os.Remove(dir); !errors.Is(err, fs.ErrNotExist) {
				assert.NoError(t, err)
			}
		}
	}
}
