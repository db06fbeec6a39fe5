package registry

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAPacerCallsOncePerPeriodAndForTheLastChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		p := pacer{notify: func(key string) { calls = append(calls, key) }}
		p.change("a")
		assert.Equal(t, []string{"a"}, calls, "at once")
		for range 250 { // 2.5 s
			p.change("a")
			time.Sleep(10 * time.Millisecond)
		}
		p.change("b")
		synctest.Wait()
		assert.Equal(t, []string{"a", "a", "a", "b"}, calls)
		time.Sleep(time.Hour)
		assert.Equal(t, []string{"a", "a", "a", "b", "a"}, calls, "the last change is notified")
		assert.Empty(t, p.changed)
		p.end()
		p.change("a")
		assert.Len(t, calls, 5)
	})
}
