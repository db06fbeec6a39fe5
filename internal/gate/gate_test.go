package gate_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/internal/gate"
)

func TestCloseWaitsForAdmittedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate.Gate
		assert.True(t, g.Enter())
		closed := false
		go func() { g.Close(); closed = true }()
		synctest.Wait()
		assert.False(t, closed)
		assert.False(t, g.Enter())
		g.Leave()
		synctest.Wait()
		assert.True(t, closed)
	})
}
