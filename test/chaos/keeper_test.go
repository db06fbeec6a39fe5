//go:build unix

package chaos

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newKeeper(t *testing.T, seconds string) *agentKeeper {
	health := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(health.Close)
	return &agentKeeper{checker: newChecker(), agent: agent{
		binary: "sleep", args: []string{seconds}, addr: strings.TrimPrefix(health.URL, "http://"), log: filepath.Join(t.TempDir(), "agent.log"),
	}}
}

func TestAnAgentThatTerminatesByItselfIsAViolation(t *testing.T) {
	k := newKeeper(t, "0.2")
	k.once(t.Context())
	require.Len(t, k.checker.violations, 1)
	assert.Equal(t, agentKeepsRunning, k.checker.violations[0].invariant)
}

// The agent may be revived before its keeper has seen that it was killed.
func TestAnAgentThatIsKilledAndRevivedAtOnceIsNoViolation(t *testing.T) {
	k := newKeeper(t, "60")
	require.NoError(t, k.launch())
	first := k.process
	require.NoError(t, k.kill())
	k.revive()
	assert.True(t, k.ended == first && !k.dead)

	done := make(chan struct{})
	go func() {
		defer close(done)
		k.once(t.Context())
	}()
	for k.pid() == 0 {
		require.NoError(t, t.Context().Err())
	}
	require.NoError(t, k.kill())
	k.revive()
	<-done
	assert.Empty(t, k.checker.violations)
}
