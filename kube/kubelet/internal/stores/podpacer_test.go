package stores

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
)

func TestAPodPacerCallsOncePerPeriodAndForTheLastChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		p := NewPodPacer(func(uid types.UID) { calls = append(calls, string(uid)) })
		called := func() []string { // notify is called with the lock
			p.mu.Lock()
			defer p.mu.Unlock()
			return slices.Clone(calls)
		}
		p.Change("a")
		assert.Equal(t, []string{"a"}, called(), "at once")
		for range 250 { // 2.5 s
			p.Change("a")
			time.Sleep(10 * time.Millisecond)
		}
		p.Change("b")
		synctest.Wait()
		assert.Equal(t, []string{"a", "a", "a", "b"}, called())
		time.Sleep(time.Hour)
		assert.Equal(t, []string{"a", "a", "a", "b", "a"}, called(), "the last change is notified")
		p.mu.Lock()
		assert.Empty(t, p.changed)
		p.mu.Unlock()
	})
}
