//go:build linux

package e2enode

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseRun(t *testing.T) {
	u, err := parseRun([]string{"-p", "Delegate=true", "-p", "StandardError=append:/x/kubelet.log", "--unit=kubelet-1.service", "--slice=runtime.slice",
		"--remain-after-exit", "/x/kubelet", "--v", "4", "--a=100%%$$"})
	require.NoError(t, err)
	assert.Equal(t, unit{Name: "kubelet-1", Log: "/x/kubelet.log", Args: []string{"/x/kubelet", "--v", "4", "--a=100%$"}}, u)
	for _, args := range [][]string{{"--scope", "--", "true"}, {"--unit=x"}, {"-p"}} {
		_, err := parseRun(args)
		assert.Error(t, err, args)
	}
}

// The loops of this test wait for processes of the operating system, not for time.
func TestAUnitIsStartedStoppedAndRestarted(t *testing.T) {
	units := t.TempDir()
	log := filepath.Join(t.TempDir(), "log")
	t.Cleanup(func() { assert.NoError(t, stopUnits(units)) })
	started := func(times int) {
		require.Eventually(t, func() bool {
			text, err := os.ReadFile(log)
			return err == nil && string(text) == strings.Repeat("started\n", times)
		}, time.Minute, time.Millisecond)
	}
	require.NoError(t, systemdRun(units, []string{"-p", "StandardError=append:" + log, "--unit=kubelet-7.service", "sh", "-c", "echo started; exec sleep 600"}))
	started(1)
	first, err := readUnit(units, "kubelet-7.service")
	require.NoError(t, err)
	assert.True(t, first.runs())

	require.NoError(t, systemctl(units, []string{"reset-failed", "kubelet-7"}))
	require.NoError(t, systemctl(units, []string{"kill", "kubelet-7"}))
	require.Eventually(t, func() bool { return !first.runs() }, time.Minute, time.Millisecond)
	require.NoError(t, systemctl(units, []string{"restart", "kubelet-7"}))
	started(2)
	second, err := readUnit(units, "kubelet-7")
	require.NoError(t, err)
	assert.True(t, second.runs())
	assert.False(t, unit{PID: second.PID, Started: "1"}.runs(), "another process with the same PID")
	require.NoError(t, systemctl(units, []string{"restart", "kubelet-7"}))
	assert.False(t, second.runs())
	started(3)

	require.NoError(t, systemctl(units, []string{"stop", "kubelet-7"}))
	assert.Error(t, systemctl(units, []string{"kill", "kubelet-8"}))
	assert.Error(t, systemctl(units, []string{"enable", "kubelet-7"}))
	assert.Error(t, systemctl(units, []string{"daemon-reload"}))
	assert.Error(t, sudo(nil))
}
