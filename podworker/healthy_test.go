package podworker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sv-4: an idle loop is healthy; one that is blocked is unhealthy after five minutes.
func TestALoopThatIsStuckIsNotHealthy(t *testing.T) {
	l := &Loop{cfg: LoopConfig{Workers: &Workers{pods: nil}}, table: new(Table)}
	assert.NoError(t, l.Healthy(), "before it runs")
	synctest.Test(t, func(t *testing.T) {
		l.recordActive()
		time.Sleep(5 * time.Minute)
		require.NoError(t, l.Healthy())
		time.Sleep(time.Second)
		require.EqualError(t, l.Healthy(), "sync Loop took longer than expected")
		l.recordActive()
		assert.NoError(t, l.Healthy())
	})
}
