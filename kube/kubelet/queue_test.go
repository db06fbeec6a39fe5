package kubelet

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
)

func TestAQueueDeliversWhatWasAddedBeforeItsReceiverExisted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q stores.Queue[string]
		q.Add("a")
		q.Add("b")
		q.Add("a")
		var got []string
		run := q.Deliver(func(s string) { got = append(got, s) })
		ctx, stop := context.WithCancel(t.Context())
		returned := make(chan error)
		go func() { returned <- run(ctx) }()
		synctest.Wait()
		assert.ElementsMatch(t, []string{"a", "b"}, got, "equal ones count once")
		q.Add("a")
		synctest.Wait()
		assert.ElementsMatch(t, []string{"a", "b", "a"}, got)
		stop()
		require.NoError(t, <-returned)
	})
}
