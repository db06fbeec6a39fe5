package registry

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAPacerCallsOncePerPeriodAndForTheLastChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		p := pacer{notify: func(key string) { calls = append(calls, key) }}
		called := func() []string { // notify is called with the lock
			p.mu.Lock()
			defer p.mu.Unlock()
			return slices.Clone(calls)
		}
		p.change("a")
		assert.Equal(t, []string{"a"}, called(), "at once")
		for range 250 { // 2.5 s
			p.change("a")
			time.Sleep(10 * time.Millisecond)
		}
		p.change("b")
		synctest.Wait()
		assert.Equal(t, []string{"a", "a", "a", "b"}, called())
		time.Sleep(time.Hour)
		assert.Equal(t, []string{"a", "a", "a", "b", "a"}, called(), "the last change is notified")
		p.mu.Lock()
		assert.Empty(t, p.changed)
		p.mu.Unlock()
		p.end()
		p.change("a")
		assert.Len(t, called(), 5)
	})
}
