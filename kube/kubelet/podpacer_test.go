package kubelet

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
)

func TestAPodPacerCallsOncePerPeriodAndForTheLastChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		p := stores.PodPacer{Notify: func(uid types.UID) { calls = append(calls, string(uid)) }}
		called := func() []string { // notify is called with the lock
			p.Mu.Lock()
			defer p.Mu.Unlock()
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
		p.Mu.Lock()
		assert.Empty(t, p.Changed)
		p.Mu.Unlock()
	})
}
