package cri

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A CRI runtime refuses a relative log path, or resolves it against its own working directory.
func TestRelativeDirsAreMadeAbsolute(t *testing.T) {
	wd, err := os.Getwd()
	require.NoError(t, err)
	d := Dirs{Root: "state", PodLogs: filepath.Join("state", "logs"), ContainerLogs: "containers"}
	require.NoError(t, d.complete())
	assert.Equal(t, Dirs{
		Root: filepath.Join(wd, "state"), PodLogs: filepath.Join(wd, "state", "logs"), ContainerLogs: filepath.Join(wd, "containers"),
	}, d)

	d = Dirs{}
	require.NoError(t, d.complete())
	assert.Equal(t, Dirs{Root: "/var/lib/kubelet", PodLogs: "/var/log/pods"}, d)
}
