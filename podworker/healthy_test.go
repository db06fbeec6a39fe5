package podworker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sv-4: a loop that goes round is well, however little happens; one that something
// keeps is not after five minutes.
func TestALoopThatIsStuckIsNotHealthy(t *testing.T) {
	l := &Loop{cfg: LoopConfig{Workers: &Workers{pods: nil}}}
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
