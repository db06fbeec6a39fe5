package kubelet

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAQueueDeliversWhatWasAddedBeforeItsReceiverExisted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queue[string]
		q.add("a")
		q.add("b")
		q.add("a")
		var got []string
		run := q.deliver(func(s string) { got = append(got, s) })
		ctx, stop := context.WithCancel(t.Context())
		returned := make(chan error)
		go func() { returned <- run(ctx) }()
		synctest.Wait()
		assert.ElementsMatch(t, []string{"a", "b"}, got, "equal ones count once")
		q.add("a")
		synctest.Wait()
		assert.ElementsMatch(t, []string{"a", "b", "a"}, got)
		stop()
		require.NoError(t, <-returned)
	})
}
