package logind_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/shutdown/logind"
)

func TestTheMachineWaitsForTheNode(t *testing.T) { // sh-4, sh-10
	t.Parallel()
	address, _ := newBus(t)
	l := newLogin(t, address, 30*time.Second, false)
	w := newWatch(t, address, l.confDir, 30*time.Second)
	require.False(t, w.next().Stopping)
	asked, kills := l.calls()
	assert.Equal(t, []string{"shutdown|kubelet|Kubelet needs time to handle node shutdown|delay"}, asked)
	assert.Empty(t, kills, "it waits long enough as it is")
	assert.NoFileExists(t, filepath.Join(l.confDir, "99-kubelet.conf"))

	l.prepare(true)
	n := w.next()
	require.True(t, n.Stopping)
	assert.True(t, l.inhibited(0))
	n.Release()
	require.Eventually(t, func() bool { return !l.inhibited(0) }, patience, 20*time.Millisecond)
	n.Release() // twice is once
}

func TestTheLockIsTakenAgainAfterACanceledShutdown(t *testing.T) { // sh-5
	t.Parallel()
	address, _ := newBus(t)
	l := newLogin(t, address, 30*time.Second, false)
	w := newWatch(t, address, l.confDir, time.Second)
	require.False(t, w.next().Stopping)
	for lock := range 3 {
		l.prepare(true)
		l.prepare(true) // sent twice
		n := w.next()
		require.True(t, n.Stopping)
		require.True(t, l.inhibited(lock))
		if lock == 1 {
			n.Release()
		}
		l.prepare(false)
		require.False(t, w.next().Stopping)
		require.Eventually(t, func() bool { return !l.inhibited(lock) && l.inhibited(lock+1) }, patience, 20*time.Millisecond)
	}
	w.stop()
	require.NoError(t, w.failed())
	require.Eventually(t, func() bool { return !l.inhibited(3) }, patience, 20*time.Millisecond, "the agent has ended")
}

func TestTheDelayOfLogindIsRaised(t *testing.T) { // sh-4
	t.Parallel()
	address, _ := newBus(t)
	l := newLogin(t, address, 5*time.Second, false)
	w := newWatch(t, address, l.confDir, 44500*time.Millisecond)
	require.False(t, w.next().Stopping)
	_, kills := l.calls()
	assert.Equal(t, []string{"systemd-logind.service all 1"}, kills)
	text, err := os.ReadFile(filepath.Join(l.confDir, "99-kubelet.conf"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "\n[Login]\nInhibitDelayMaxSec=45\n")
}

func TestALogindThatIgnoresItsConfigurationIsAnError(t *testing.T) { // sh-4
	t.Parallel()
	address, _ := newBus(t)
	l := newLogin(t, address, 5*time.Second, false)
	l.deaf = true
	err := newWatch(t, address, l.confDir, time.Minute).failed()
	require.ErrorContains(t, err, "maximum delay is 5s, node requires 1m0s: "+l.confDir)
	asked, _ := l.calls()
	assert.Empty(t, asked)
}

func TestABusThatEndsIsAnError(t *testing.T) { // sh-4: the manager retries after a second
	t.Parallel()
	address, end := newBus(t)
	l := newLogin(t, address, time.Minute, false)
	w := newWatch(t, address, l.confDir, time.Second)
	require.False(t, w.next().Stopping)
	end()
	require.EqualError(t, w.failed(), "logind: bus connection closed")
	require.Eventually(t, func() bool { return !l.inhibited(0) }, patience, 20*time.Millisecond)
	require.ErrorContains(t, newWatch(t, address, l.confDir, time.Second).failed(), "logind: connect to the bus: ")
}

func TestTheLockOfAShutdownOutlivesTheBus(t *testing.T) {
	t.Parallel()
	address, end := newBus(t)
	l := newLogin(t, address, time.Minute, false)
	w := newWatch(t, address, l.confDir, time.Second)
	require.False(t, w.next().Stopping)
	l.prepare(true)
	n := w.next()
	end()
	require.Error(t, w.failed())
	assert.True(t, l.inhibited(0))
	n.Release()
	require.Eventually(t, func() bool { return !l.inhibited(0) }, patience, 20*time.Millisecond)
}

func TestAShutdownInProgressIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	address, _ := newBus(t)
	l := newLogin(t, address, time.Minute, true)
	w := newWatch(t, address, l.confDir, time.Second)
	n := w.next()
	assert.True(t, n.Stopping)
	assert.Nil(t, n.Release)
	asked, _ := l.calls()
	assert.Empty(t, asked)
}

func TestABusWithoutALogindIsAnError(t *testing.T) {
	t.Parallel()
	address, _ := newBus(t)
	err := newWatch(t, address, t.TempDir(), time.Second).failed()
	require.ErrorContains(t, err, "logind: read "+manager+".InhibitDelayMaxUSec: The name org.freedesktop.login1 was not provided by any .service files")
}

func TestAReloadThatEndsBeforeItBeginsIsAnError(t *testing.T) {
	t.Parallel()
	_, err := logind.New(logind.Config{ReloadTimeout: -1})
	require.EqualError(t, err, "logind: Config.ReloadTimeout is negative")
}
