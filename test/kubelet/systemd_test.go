//go:build unix

package kubelet

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The agent notifies systemd that it is ready, that it is alive twice in each
// WatchdogSec, and that it stops (sv-5).
func TestSystemdIsNotified(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of real time")
	}
	dir, err := os.MkdirTemp("", "notify") // a socket's path must be short
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	socket := filepath.Join(dir, "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", "400000")
	next := func() string {
		text := make([]byte, 100)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
		n, err := conn.Read(text)
		require.NoError(t, err)
		return string(text[:n])
	}
	a := newAgent(t, "process")
	a.write("sleeper.yaml", sleeper("sleeper"))
	a.start()
	assert.Equal(t, []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1"}, []string{next(), next(), next(), next()})
	a.eventually("the pod runs", func() bool { return running(a.pods()["sleeper"]) })
	require.NoError(t, a.interrupt())
	a.start() // another one: newAgent has registered its cleanup
	var states []string
	for len(states) == 0 || states[len(states)-1] != "READY=1" {
		states = append(states, next())
	}
	assert.True(t, slices.Contains(states, "STOPPING=1"), "%v", states)
}

// The unit, and the drop-in for kubeadm, start this agent with flags that exist, and let pods
// outlive it.
func TestTheUnitStartsTheAgent(t *testing.T) {
	_, help, _, _ := try(t, "--help")
	for _, name := range []string{"kubelet.service", "10-kubeadm.conf"} {
		text, err := os.ReadFile("../../examples/kubelet/" + name)
		require.NoError(t, err)
		flags := regexp.MustCompile(`--[a-z-]+=`).FindAllString(string(text), -1)
		assert.NotEmpty(t, flags)
		for _, flag := range flags {
			assert.Regexp(t, `(?m)^ +`+regexp.QuoteMeta(flag[:len(flag)-1])+`\b`, help)
		}
		if name == "kubelet.service" {
			for _, line := range []string{"Type=notify", "WatchdogSec=60s", "KillMode=process", "OOMScoreAdjust=-999"} {
				assert.Contains(t, string(text), "\n"+line+"\n")
			}
		}
	}
}
